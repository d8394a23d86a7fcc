package step

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/process"
)

const (
	trapCode  = 1 // TRAP_BRKPT: how the kernel reports the breakpoint instruction
	trapAhead = 0 // the program counter is still at it then
)

// isStep says whether the kernel reports a step so. Behind a system call it makes one up, with no code
// (report_syscall_exit in arch/arm64/kernel/ptrace.c).
func isStep(code int32) bool {
	return code == process.TrapStep || code == process.TrapHandler || code == 0
}

// returnAddress is in the link register where a function is entered.
func (e *engine) returnAddress(t *thread) (uint64, bool) { return t.regs.general[arm64.LR], true }

// returnsTo says whether what a thread jumps to is to return to an address.
func (e *engine) returnsTo(t *thread, ra uint64) bool { return t.regs.general[arm64.LR] == ra }

// called says whether a step has carried out a call.
func (e *engine) called(t *thread, in *inst) bool {
	return (in.Kind == arm64.Call || in.Kind == arm64.IndirectCall) && t.regs.general[arm64.LR] == t.before.pc+arm64.Len
}

// repeats says whether an instruction may be carried out again and again: none traps between.
func repeats(*inst) bool { return false }

// setsStackPointer says whether an instruction loads the stack pointer, which none does, or copies another register to it.
func setsStackPointer(in *inst) (loaded, copied bool) {
	return false, in.Class == arm64.AddSubImm && in.WritesReg(arm64.SP) && in.Rn() != arm64.SP && in.Rn() != arm64.FP
}

// maxExclusive is how far behind an exclusive load the store is looked for, in instructions.
const maxExclusive = 32

// atFullSpeed has what is between an exclusive load and its store carried out at once: the monitor is cleared by each step, so that
// the store would fail for ever.
func (e *engine) atFullSpeed(t *thread) {
	im := e.images.at(t.regs.pc)
	if im == nil {
		return
	}
	addr := t.regs.pc - im.slide
	if in := im.inst(addr); in.Class != arm64.Exclusive || in.Word>>22&1 == 0 {
		return
	}
	for k := uint64(1); k < maxExclusive; k++ {
		in := im.inst(addr + k*arm64.Len)
		if in.Class == arm64.Exclusive && in.Word>>22&1 == 0 {
			e.await(t.top(), t.regs.pc+(k+1)*arm64.Len, t.regs.sp())
			return
		}
	}
}

// handlerEntered says whether the step has led to the entry of a signal's handler: the kernel has put a frame on the stack
// that holds the registers before (struct rt_sigframe: siginfo, then struct ucontext).
func (e *engine) handlerEntered(t *thread) bool {
	const (
		context = 128              // of ucontext in the frame
		sp      = 176 + 8 + 31*8   // of the stack pointer in ucontext, behind the mask, the fault's address and the others
		pc      = sp + 8           // of the program counter
		size    = context + pc + 8 //
	)
	if t.regs.sp() == t.before.sp() || t.regs.general[2] != t.regs.sp()+context || t.regs.general[0] != uint64(t.signal) {
		return false
	}
	var b [size]byte
	if _, err := e.t.Process().ReadAt(b[:], t.regs.sp()); err != nil {
		return false
	}
	word := func(at int) uint64 { return binary.LittleEndian.Uint64(b[context+at:]) }
	return word(sp) == t.before.sp() && word(pc) == t.before.pc
}

// carriedOut notes what an instruction of a followed call has done to its return address.
func (e *engine) carriedOut(t *thread, f *frame, in *inst) error {
	lr := t.before.general[arm64.LR]
	const hint, paciasp, pacibsp, autiasp, autibsp = 0xD503201F, 25, 27, 29, 31
	switch in.Class {
	case arm64.Sign, arm64.Authenticate, arm64.Strip, arm64.SignPC:
		n := in.Word >> 5 & 127
		switch {
		case !in.WritesReg(arm64.LR):
		case lr&addressBits != f.ra: // another address
		case in.Word&^(127<<5) != hint:
			f.unknown = true
		case n == paciasp || n == pacibsp:
			f.signed = true
		case n == autiasp || n == autibsp:
			f.signed = false
		default:
			f.unknown = true
		}
	case arm64.Store, arm64.StorePair:
		if in.Size != 8 || in.Word>>26&1 != 0 || in.Index || lr&addressBits != f.ra || f.at != 0 {
			break
		}
		at := t.before.general[in.Base]
		if !in.PostIndex {
			at += uint64(int64(in.Disp))
		}
		if in.Class == arm64.StorePair && in.Rt2() == arm64.LR {
			f.at, f.stored = at+8, lr
		} else if in.Rd() == arm64.LR {
			f.at, f.stored = at, lr
		}
		if f.at != 0 && !f.stack.contains(f.at) {
			f.at = 0
		}
	}
	return nil
}

// returned says whether the call has ended.
func (e *engine) returned(t *thread, f *frame, in *inst) bool {
	if !f.stack.contains(t.regs.sp()) && t.regs.sp() != f.cfa {
		return false
	}
	if t.regs.sp() == f.cfa {
		return t.regs.pc == f.ra && !goesOn(in) || isReturn(in)
	}
	return t.regs.sp() > f.cfa
}
