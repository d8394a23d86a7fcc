package step

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
)

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
		e.passFlags(t)
	}
	return e.goOn(t, 0)
}

// passFlags has popf carried out at full speed: when it is stepped over, the kernel no longer tells its own trap flag from
// the program's (enable_single_step in arch/x86/kernel/step.c), and leaves it set.
func (e *engine) passFlags(t *thread) {
	im := e.images.at(t.regs.pc)
	if im == nil {
		return
	}
	const popf = 0x9D
	in := im.inst(t.regs.pc - im.slide)
	if in.Len == 0 || in.Opcode != popf || in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary {
		return
	}
	if delta, known := in.StackDelta(); known {
		e.await(t.top(), t.regs.pc+uint64(in.Len), t.regs.sp()+uint64(delta))
	}
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
	var in amd64.Inst
	if im := e.images.at(t.before.pc); im != nil {
		in = im.inst(t.before.pc - im.slide)
	}
	if err := e.hideTrapFlag(t, &in); err != nil {
		return err
	}
	called := (in.Kind == amd64.Call || in.Kind == amd64.IndirectCall) && t.regs.sp() == t.before.sp()-8
	switch {
	case called && t.regs.pc != t.before.pc+uint64(in.Len): // else it is how code finds its own address
		e.await(f, t.before.pc+uint64(in.Len), t.before.sp())
		return e.enter(t)
	case t.regs.pc == t.before.pc && in.Prefixes&(amd64.RepF3|amd64.RepneF2) != 0 && in.Kind == amd64.Other:
		e.await(f, t.before.pc+uint64(in.Len), t.before.sp()) // it traps at each repetition
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

// handlerEntered says whether the step has led to the entry of a signal's handler: the kernel has put a frame on the stack
// that holds the registers before (struct rt_sigframe: the return address, then struct ucontext).
func (e *engine) handlerEntered(t *thread) bool {
	const (
		context = 8         // of ucontext in the frame
		rsp     = 40 + 15*8 // of the stack pointer in ucontext
		rip     = rsp + 8   // of the program counter
		size    = context + rip + 8
	)
	// The program counter may be the same: a handler can be interrupted where it begins, by another signal that it handles.
	if t.regs.sp() == t.before.sp() || t.raw.Rdx != t.regs.sp()+context || t.raw.Rdi != uint64(t.signal) {
		return false
	}
	var b [size]byte
	if _, err := e.t.Process().ReadAt(b[:], t.regs.sp()); err != nil {
		return false
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[context+at:]) }
	return word(rsp) == t.before.sp() && word(rip) == t.before.pc
}

// hideTrapFlag clears the flag by which the processor steps in what pushf has stored: popf would set it for good.
func (e *engine) hideTrapFlag(t *thread, in *amd64.Inst) error {
	const pushf, trap = 0x9C, 1 << 8
	if in.Opcode != pushf || in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary {
		return nil
	}
	flags, ok := e.word(t.regs.sp())
	if !ok {
		return nil
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], flags&^trap)
	_, err := e.t.Process().WriteAt(b[:], t.regs.sp())
	return err
}

// returned says whether the call has ended. Where the stack pointer is back at the CFA the function may still be about to
// jump to a return address that it has popped.
func (e *engine) returned(t *thread, f *frame, in *amd64.Inst) bool {
	if !f.stack.contains(t.regs.sp()) && t.regs.sp() != f.cfa {
		return false
	}
	if t.regs.sp() == f.cfa {
		return t.regs.pc == f.ra || in.Kind != amd64.Other
	}
	return t.regs.sp() > f.cfa
}

// maxAlloca is how far the stack pointer may be moved down at once by copying a register to it: what moves further is
// taken for a change to another stack.
const maxAlloca = 16 << 10

// switched says whether the thread is on another stack, as swapcontext leads to. On the heap stacks lie side by side: there
// a stack pointer that is loaded, not computed, from below tells, and a return to another function.
func (e *engine) switched(t *thread, f *frame, in *amd64.Inst) bool {
	sp := t.regs.sp()
	if !f.stack.contains(sp) {
		grown := e.images.grown(sp, f.cfa-8)
		if grown == (span{}) {
			return true
		}
		f.stack = grown
	}
	if in.Kind == amd64.Return {
		return e.outside(t)
	}
	if sp >= t.before.sp() || in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary {
		return false
	}
	const load, store, popSP = 0x8B, 0x89, 0x5C
	switch {
	case in.Opcode == popSP, in.Opcode == load && in.HasMem:
		return true
	case in.Opcode == load, in.Opcode == store && !in.HasMem:
		return t.before.sp()-sp > maxAlloca
	}
	return false
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
func (e *engine) tailJumps(t *thread, f *frame, in *amd64.Inst) bool {
	if in.Kind == amd64.Other || t.regs.sp() != f.cfa-8 {
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
