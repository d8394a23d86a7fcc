package process

import "encoding/binary"

// Offsets in struct ucontext and struct sigcontext of x86-64
// (arch/x86/include/uapi/asm/ucontext.h, sigcontext.h).
const (
	ucStackFlags = 24
	ucMContext   = 40
	ucSigMask    = 296
	ucSize       = 304

	ucFPXState        = 1 // UC_FP_XSTATE
	ucSigContextSS    = 2 // UC_SIGCONTEXT_SS
	ucStrictRestoreSS = 4 // UC_STRICT_RESTORE_SS

	// badStackFlags is none of the modes that sigaltstack(2) knows: rt_sigreturn
	// ignores the refusal and leaves the alternate stack as it is.
	badStackFlags = 0x7f
)

// A frameState is what rt_sigreturn puts into a thread.
type frameState struct {
	r8, r9, r10, r11, r12, r13, r14, r15 uint64
	rdi, rsi, rbp, rbx, rdx, rax, rcx    uint64
	rsp, rip, eflags                     uint64
	cs, ss                               uint16
	mask                                 uint64 // blocked signals
	vector                               uint64 // address of the vector state, 0 to clear it
}

// append adds the frame as rt_sigreturn reads it: a struct ucontext. The stack
// pointer must be at its start when rt_sigreturn is called.
func (f *frameState) append(out []byte) []byte {
	le := binary.LittleEndian
	var uc [ucSize]byte
	le.PutUint64(uc[0:], ucFPXState|ucSigContextSS|ucStrictRestoreSS)
	le.PutUint32(uc[ucStackFlags:], badStackFlags)
	for i, v := range [...]uint64{
		f.r8, f.r9, f.r10, f.r11, f.r12, f.r13, f.r14, f.r15,
		f.rdi, f.rsi, f.rbp, f.rbx, f.rdx, f.rax, f.rcx, f.rsp, f.rip, f.eflags,
		uint64(f.cs) | uint64(f.ss)<<48, // cs, gs, fs, ss
		0, 0, 0, 0,                      // err, trapno, oldmask, cr2
		f.vector,
	} {
		le.PutUint64(uc[ucMContext+8*i:], v)
	}
	le.PutUint64(uc[ucSigMask:], f.mask)
	return append(out, uc[:]...)
}

func (f *frameState) setBase(r baseRegister, v uint64) {
	switch r {
	case regRBX:
		f.rbx = v
	case regRBP:
		f.rbp = v
	case regR12:
		f.r12 = v
	case regR13:
		f.r13 = v
	case regR14:
		f.r14 = v
	case regR15:
		f.r15 = v
	}
}

func (f *frameState) setCall(c Call) {
	f.rax = uint64(c.Number)
	f.rdi, f.rsi, f.rdx = c.Args[0], c.Args[1], c.Args[2]
	f.r10, f.r8, f.r9 = c.Args[3], c.Args[4], c.Args[5]
}
