package step

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/process"
)

const (
	trapCode  = process.TrapKernel // how the kernel reports the breakpoint instruction
	trapAhead = 1                  // how far behind its beginning the program counter is then
)

// isStep says whether the kernel reports a step so.
func isStep(code int32) bool {
	return code == process.TrapStep || code == process.TrapSyscall || code == process.TrapHandler
}

// returnAddress is on the top of the stack where a function is entered.
func (e *engine) returnAddress(t *thread) (uint64, bool) { return e.word(t.regs.sp()) }

// returnsTo says whether what a thread jumps to is to return to an address: its stack pointer is known to be where that stands.
func (e *engine) returnsTo(*thread, uint64) bool { return true }

// called says whether a step has carried out a call.
func (e *engine) called(t *thread, in *inst) bool {
	return (in.Kind == amd64.Call || in.Kind == amd64.IndirectCall) && t.regs.sp() == t.before.sp()-8
}

// repeats says whether an instruction may be carried out again and again.
func repeats(in *inst) bool {
	return in.Prefixes&(amd64.RepF3|amd64.RepneF2) != 0 && in.Kind == amd64.Other
}

// setsStackPointer says whether an instruction loads the stack pointer, or copies another register to it.
func setsStackPointer(in *inst) (loaded, copied bool) {
	const load, store, popSP = 0x8B, 0x89, 0x5C
	if in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary {
		return false, false
	}
	loaded = in.Opcode == popSP || in.Opcode == load && in.HasMem
	return loaded, in.Opcode == load || in.Opcode == store && !in.HasMem
}

// atFullSpeed has popf carried out at full speed: when it is stepped over, the kernel no longer tells its own trap flag from
// the program's (enable_single_step in arch/x86/kernel/step.c), and leaves it set.
func (e *engine) atFullSpeed(t *thread) {
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

// carriedOut clears the flag by which the processor steps in what pushf has stored: popf would set it for good.
func (e *engine) carriedOut(t *thread, _ *frame, in *inst) error {
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
func (e *engine) returned(t *thread, f *frame, in *inst) bool {
	if !f.stack.contains(t.regs.sp()) && t.regs.sp() != f.cfa {
		return false
	}
	if t.regs.sp() == f.cfa {
		return t.regs.pc == f.ra || in.Kind != amd64.Other
	}
	return t.regs.sp() > f.cfa
}

// word reads eight bytes of the process's memory.
func (e *engine) word(addr uint64) (uint64, bool) {
	var b [8]byte
	if _, err := e.t.Process().ReadAt(b[:], addr); err != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}
