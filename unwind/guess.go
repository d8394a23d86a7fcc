package unwind

// stepGuess goes on from code without CFI, or with CFI that cannot be read. Each way
// is tried in turn until one leads to a believable caller: in code, behind a call.
// When none does, the end is why.
func (w *Walker) stepGuess(frames []Frame, why End) ([]Frame, End, bool) {
	frame := &frames[len(frames)-1]
	e := w.walk.entry
	exact := frame.Has(Exact)
	// Where on A64's frames their records are isn't said, so where one has led to, the stack pointer isn't known.
	follow := w.arch.followed() && !(w.arch.a64 && frame.By == ByFramePointer)
	if follow && (e.traits&jit == 0 || exact || e.by == ByCode) {
		if more, end, ok := w.try(frames, w.byFollowing, ByCode); ok || end.Complete() {
			return more, end, ok
		}
	}
	if exact { // a row that the instruction itself has put in doubt
		if next, end, ok := w.byRow(&entry{}, frames); ok {
			if more, end, ok := w.advance(frames, &next, ByCFI); ok || end.Complete() {
				return more, end, ok
			}
		} else if end.Complete() {
			return frames, end, false
		}
	}
	if more, end, ok := w.try(frames, w.byFramePointer, ByFramePointer); ok || end.Complete() {
		return more, end, ok
	}
	if exact {
		if more, end, ok := w.try(frames, w.byLeaf, ByLeaf); ok || end.Complete() {
			return more, end, ok
		}
	}
	if e.traits&jit != 0 && !exact && follow {
		if more, _, ok := w.try(frames, w.byFollowing, ByCode); ok {
			return more, End{}, true
		}
	}
	if exact && e.by == ByCode && e.kind == kindSP && e.cfaOff == int32(w.arch.wordSize) { // at a return
		if to, ok := w.reader.word(w.walk.sp); ok && w.cache[w.find(to, false)].kind == kindNotCode {
			why = End{Reason: BadReturnAddress, Addr: to} // an overwritten stack
		}
	}
	return frames, why, false
}

// stepLeaf goes on from where no code is: a call through a bad pointer has left its
// return address as the first thing.
func (w *Walker) stepLeaf(frames []Frame) ([]Frame, End, bool) {
	if more, _, ok := w.try(frames, w.byLeaf, ByLeaf); ok {
		return more, End{}, true
	}
	if _, ok := w.reader.word(w.walk.sp); !ok && w.arch.lr < 0 {
		return frames, End{Reason: Unreadable, Addr: w.walk.sp}, false
	}
	return frames, End{Reason: NoCFI, Addr: frames[len(frames)-1].PC}, false
}

// try takes a guess if what it leads to holds. The end is Complete when it leads to
// the end of a chain of frame pointers, else it means nothing.
func (w *Walker) try(frames []Frame, guess func(*Registers) (Registers, End, bool), by Rule) ([]Frame, End, bool) {
	no := End{Reason: NoCFI}
	if _, ok := w.catchUp(frames); !ok && w.walk.regsAt != len(frames)-1 {
		r := &w.walk.regs
		r.keepOnly(0) // what could not be found is given up
		r.PC = frames[len(frames)-1].PC
		r.Set(w.arch.sp, w.walk.sp)
		if w.walk.fpKnown {
			r.Set(w.arch.fp, w.walk.fp)
		}
		w.walk.regsAt = len(frames) - 1
	}
	w.forgetLink(&frames[len(frames)-1])
	next, end, ok := guess(&w.walk.regs)
	if !ok {
		if !end.Complete() {
			end = no
		}
		return frames, end, false
	}
	next.PC &= w.arch.strip
	if next.PC == 0 {
		if fp, known := next.Get(w.arch.fp); known && fp == 0 {
			return frames, End{}, false
		}
		return frames, no, false
	}
	if traits := w.cache[w.find(next.PC, false)].traits; traits&afterCall == 0 &&
		!(by != ByLeaf && traits&w.walk.entry.traits&jit != 0 && w.chained(&next)) {
		return frames, no, false
	}
	more, _, ok := w.advance(frames, &next, by)
	return more, no, ok
}

// forgetLink forgets the link register of a caller: the call has overwritten it.
func (w *Walker) forgetLink(f *Frame) {
	if w.arch.lr >= 0 && !f.Has(Exact) {
		w.walk.regs.Forget(w.arch.lr)
	}
}

// chained says whether a caller's frame pointer leads further out on the same stack.
// Interpreters such as HotSpot's have callers return to places that follow no call.
func (w *Walker) chained(next *Registers) bool {
	fp, ok1 := next.Get(w.arch.fp)
	sp, ok2 := next.Get(w.arch.sp)
	if !ok1 || !ok2 || fp < sp || fp&(w.arch.wordSize-1) != 0 {
		return false
	}
	from, ok1 := w.images.Mapping(sp)
	to, ok2 := w.images.Mapping(fp)
	return ok1 && ok2 && from.Start == to.Start && from.Write
}

// byFollowing computes the caller's registers from the instructions ahead.
func (w *Walker) byFollowing(r *Registers) (Registers, End, bool) {
	if w.arch.a64 {
		return w.byA64(r)
	}
	out, ok := w.follower.follow(&w.reader, r.PC)
	if !ok || out.halts {
		return Registers{}, End{Reason: NoCFI, Addr: r.PC}, false
	}
	base := w.arch.sp
	if out.byFP {
		base = w.arch.fp
	}
	v, ok := r.Get(base)
	if !ok {
		return Registers{}, End{Reason: LostRegister, Addr: r.PC}, false
	}
	next := *r
	cfa := v + uint64(int64(out.cfaOff))
	next.Set(w.arch.sp, cfa)
	for reg, off := range out.popped {
		if off == 0 {
			continue
		}
		if v, ok := w.reader.word(cfa + uint64(int64(off))); ok {
			next.Set(reg, v)
		} else {
			next.Forget(reg)
		}
	}
	if next.PC, ok = w.reader.word(cfa - w.arch.wordSize); !ok {
		return next, End{Reason: Unreadable, Addr: cfa - w.arch.wordSize}, false
	}
	// A thread that has not run yet has nowhere to return to.
	return next, End{}, next.PC != 0 || !out.direct
}

// byFramePointer computes the caller's registers from a frame record, which all three
// architectures have alike: the caller's frame pointer, and then the return address.
// What other registers hold in the caller is not known.
func (w *Walker) byFramePointer(r *Registers) (Registers, End, bool) {
	fp, ok1 := r.Get(w.arch.fp)
	sp, ok2 := r.Get(w.arch.sp)
	size := w.arch.wordSize
	if !ok1 || !ok2 || fp < sp || fp&(size-1) != 0 {
		return Registers{}, End{Reason: LostRegister, Addr: r.PC}, false
	}
	callerFP, ok1 := w.reader.word(fp)
	pc, ok2 := w.reader.word(fp + size)
	if !ok1 || !ok2 {
		return Registers{}, End{Reason: Unreadable, Addr: fp}, false
	}
	var next Registers
	next.PC = pc
	next.Set(w.arch.sp, fp+2*size)
	next.Set(w.arch.fp, callerFP)
	return next, End{}, true
}

// byLeaf takes the return address from the top of the stack, or from the link register.
func (w *Walker) byLeaf(r *Registers) (Registers, End, bool) {
	sp, ok := r.Get(w.arch.sp)
	if !ok {
		return Registers{}, End{Reason: LostRegister, Addr: r.PC}, false
	}
	next := *r
	if w.arch.lr >= 0 {
		next.PC, ok = r.Get(w.arch.lr)
		return next, End{Reason: LostRegister, Addr: r.PC}, ok
	}
	next.PC, ok = w.reader.word(sp)
	next.Set(w.arch.sp, sp+w.arch.wordSize)
	return next, End{Reason: Unreadable, Addr: sp}, ok
}
