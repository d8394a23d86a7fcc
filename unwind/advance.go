package unwind

// maxStacks bounds the changes from one stack to another in one walk. Signal
// handlers on alternate stacks, the usual cause, nest once or twice.
const maxStacks = 64

// stackMark is how far out a stack was when the walk left it.
type stackMark struct {
	start uint64 // of its mapping
	sp    uint64
}

// advance checks the caller's registers and appends its frame. When it returns false
// the end says what is wrong with them, or that the outermost frame was reached.
func (w *Walker) advance(frames []Frame, next *Registers, by Rule) ([]Frame, End, bool) {
	k := &w.walk
	callee := &frames[len(frames)-1]
	exact := callee.Has(SignalFrame)
	changed := w.original(next)
	next.PC &= w.arch.strip
	sp, known := next.Get(w.arch.sp)
	switch {
	case next.PC == 0 && by == ByCFI:
		return frames, End{}, false
	case !known:
		return frames, End{Reason: LostRegister, Addr: callee.PC}, false
	}
	slot := w.find(next.PC, exact)
	// A jump to nowhere is what a signal may be about; nothing returns there.
	if !exact && w.cache[slot].kind == kindNotCode {
		return frames, End{Reason: BadReturnAddress, Addr: next.PC}, false
	}
	if end, ok := w.outward(callee, sp, by); !ok {
		return frames, end, false
	}
	k.adrift = (exact || k.adrift && sp == k.sp) && !w.inStack(sp)
	if changed || next.known&^(1<<w.arch.sp|1<<w.arch.fp) != 0 {
		k.regs, k.regsAt = *next, len(frames)
	}
	k.sp, k.slot, k.entry = sp, slot, w.cache[slot]
	k.fp, k.fpKnown = next.Get(w.arch.fp)
	w.reader.enter(sp)
	f := Frame{PC: next.PC, SP: sp, By: by, Flags: k.entry.flags}
	if exact {
		f.Flags |= Exact
	}
	if w.reader.late {
		f.Flags |= Late
	}
	return append(frames, f), End{}, true
}

// outward checks where the caller's stack pointer is.
func (w *Walker) outward(callee *Frame, sp uint64, by Rule) (End, bool) {
	k := &w.walk
	if sp&(w.arch.wordSize-1) != 0 {
		return End{Reason: Misaligned, Addr: sp}, false
	}
	if sp > k.sp && w.reader.current.at(k.sp, 1) != nil && w.reader.current.at(sp-1, 1) != nil {
		return End{}, true // both in one piece of memory
	}
	// A stack's end is a good place for the outermost frame's.
	from, ok1 := w.images.Mapping(k.sp)
	to, ok2 := w.images.Mapping(sp - 1)
	if !ok2 || !to.Write {
		if to, ok2 = w.images.Mapping(sp); !ok2 || !to.Write {
			// What a signal is about may be a stack that has overflowed, and with the return address
			// in a register the caller's stack pointer is the same then.
			return End{Reason: NoStack, Addr: sp}, callee.Has(SignalFrame) || k.adrift && sp == k.sp && callee.Has(Exact)
		}
	}
	if k.adrift {
		return End{Reason: NotOutward, Addr: sp}, sp > k.sp
	}
	if ok1 && from.Start == to.Start {
		// A leaf has no frame where the return address is in a register: on arm64,
		// and in code such as vfork, which must leave nothing on the stack.
		if sp > k.sp || sp == k.sp && callee.Has(Exact) {
			return End{}, true
		}
		if !callee.Has(SignalFrame) {
			return End{Reason: NotOutward, Addr: sp}, false
		}
	}
	// Only what is known for certain may lead to another stack: a frame pointer may
	// still be that of the code which has started a coroutine.
	if by != ByCFI && by != BySignalFrame {
		return End{Reason: NotOutward, Addr: sp}, false
	}
	return w.changeStack(from.Start, to.Start, sp)
}

// changeStack notes how far the walk came on one stack and checks that it enters the
// other further out than it has left it before.
func (w *Walker) changeStack(from, to, sp uint64) (End, bool) {
	k := &w.walk
	if len(k.stacks) >= maxStacks {
		return End{Reason: Cycle, Addr: sp}, false
	}
	if from == to { // stacks that a program has made of its heap or its data
		k.stacks = append(k.stacks, stackMark{})
		return End{}, true
	}
	for _, m := range k.stacks {
		if m.start == to && sp <= m.sp {
			return End{Reason: Cycle, Addr: sp}, false
		}
	}
	k.stacks = append(k.stacks, stackMark{from, k.sp})
	return End{}, true
}
