//go:build amd64 || arm64

package step

// met sees to a thread that stands at a breakpoint, or at one that was.
func (e *engine) met(t *thread) error {
	t.met = t.regs.pc
	if t.regs.pc == e.loaderStop {
		if err := e.rescan(); err != nil {
			return err
		}
	}
	if !t.guest && !e.done {
		if e.resumed(t) {
			return e.look(t)
		}
		if t.following() {
			return e.goOn(t, 0)
		}
		if fn := e.functionAt(t.regs.pc); fn != nil && e.push(t, fn) {
			return e.look(t)
		}
	}
	return e.goOn(t, 0)
}

// look compares the instruction that a followed thread stands at, and goes on.
func (e *engine) look(t *thread) error {
	if t.following() {
		e.compare(t)
	}
	if t.following() {
		e.atFullSpeed(t)
	}
	return e.goOn(t, 0)
}

// resumed says whether a frame was waited for to go on here, and drops those above, which have been unwound. A frame that
// has ended here by returning is dropped, too.
func (e *engine) resumed(t *thread) bool {
	for k := len(t.frames) - 1; k >= 0; k-- {
		f := &t.frames[k]
		if !f.awaiting || f.addr != t.regs.pc || f.pointer != t.regs.sp() {
			continue
		}
		e.cut(t, k+1)
		e.arrive(f)
		if f.ra == t.regs.pc && f.cfa == t.regs.sp() {
			e.cut(t, k)
			continue
		}
		return true
	}
	return false
}

// functionAt returns the chosen function that begins at an address, nil where none does.
func (e *engine) functionAt(pc uint64) *function {
	im := e.images.at(pc)
	if im == nil {
		return nil
	}
	return im.functions[pc-im.slide]
}

// moved sees to a thread that has done a step.
func (e *engine) moved(t *thread) error {
	f := t.top()
	if e.done || f == nil || f.awaiting {
		return e.goOn(t, 0) // it has only gone over a breakpoint
	}
	if t.signal != 0 && e.handlerEntered(t) {
		e.await(f, t.before.pc, t.before.sp())
		return e.enter(t)
	}
	var in inst
	if im := e.images.at(t.before.pc); im != nil {
		in = im.inst(t.before.pc - im.slide)
	}
	if err := e.carriedOut(t, f, &in); err != nil {
		return err
	}
	switch {
	case e.called(t, &in) && t.regs.pc != t.before.pc+size(&in): // else it is how code finds its own address
		e.await(f, t.before.pc+size(&in), t.before.sp())
		return e.enter(t)
	case t.regs.pc == t.before.pc && repeats(&in):
		e.await(f, t.before.pc+size(&in), t.before.sp()) // it traps at each repetition
		return e.goOn(t, 0)
	case e.returned(t, f, &in):
		e.cut(t, len(t.frames)-1)
		e.resumed(t)
		return e.look(t)
	case e.switched(t, f, &in):
		e.cut(t, len(t.frames)-1)
		return e.goOn(t, 0)
	case e.tailJumps(t, f, &in):
		return e.tailJump(t, f)
	}
	return e.look(t)
}

// enter goes on at the beginning of what was called: it is followed if it is chosen.
func (e *engine) enter(t *thread) error {
	if fn := e.functionAt(t.regs.pc); fn != nil && e.push(t, fn) {
		return e.look(t)
	}
	return e.goOn(t, 0)
}

// maxAlloca is how far the stack pointer may be moved down at once by copying a register to it: what moves further is
// taken for a change to another stack.
const maxAlloca = 16 << 10

// switched says whether the thread is on another stack, as swapcontext leads to. On the heap stacks lie side by side: there
// a stack pointer that is loaded, not computed, from below tells, and a return to another function.
func (e *engine) switched(t *thread, f *frame, in *inst) bool {
	sp := t.regs.sp()
	if !f.stack.contains(sp) {
		grown := e.images.grown(sp, f.cfa-8)
		if grown == (span{}) {
			return true
		}
		f.stack = grown
	}
	if isReturn(in) {
		return e.outside(t)
	}
	if sp >= t.before.sp() {
		return false
	}
	loaded, copied := setsStackPointer(in)
	return loaded || copied && t.before.sp()-sp > maxAlloca
}

// outside says whether control has gone from one function's code to another's.
func (e *engine) outside(t *thread) bool {
	from, to := e.images.at(t.before.pc), e.images.at(t.regs.pc)
	if from == nil || from != to {
		return true
	}
	return from.partOf(t.before.pc-from.slide) != from.partOf(t.regs.pc-from.slide)
}

// tailJumps says whether a jump has led to the beginning of another function, or out of the image, with the frame taken down.
func (e *engine) tailJumps(t *thread, f *frame, in *inst) bool {
	if goesOn(in) || t.regs.sp() != f.cfa-entryCFA || !e.returnsTo(t, f.ra) {
		return false
	}
	to := e.images.at(t.regs.pc)
	if to == nil || to != e.images.at(t.before.pc) {
		return true
	}
	addr := t.regs.pc - to.slide
	return to.begins(addr) && e.outside(t) || to.isLinkage(addr)
}

// tailJump goes on in what was jumped to, in the frame of the call.
func (e *engine) tailJump(t *thread, f *frame) error {
	if fn := e.functionAt(t.regs.pc); fn != nil {
		fn.followed = true
		f.function = fn
		e.result.Calls++
		return e.look(t)
	}
	e.await(f, f.ra, f.cfa)
	return e.goOn(t, 0)
}
