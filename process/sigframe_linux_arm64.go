package process

import "encoding/binary"

// Offsets in struct rt_sigframe, struct ucontext and struct sigcontext of arm64 (arch/arm64/kernel/signal.c,
// arch/arm64/include/uapi/asm/ucontext.h, sigcontext.h), from the beginning of the frame.
const (
	frameContext    = 128                // struct ucontext, behind struct siginfo
	frameStackFlags = frameContext + 24  // uc_stack.ss_flags
	frameSigMask    = frameContext + 40  // uc_sigmask
	frameMachine    = frameContext + 176 // uc_mcontext, aligned to 16 bytes
	frameRegs       = frameMachine + 8   // regs, sp, pc, pstate; in front of them fault_address
	frameRecords    = frameMachine + 288 // __reserved, aligned to 16 bytes
	maxRecords      = 4096               // of __reserved

	// badStackFlags is none of the modes that sigaltstack(2) knows: rt_sigreturn ignores the refusal and leaves the alternate stack as it is.
	badStackFlags = 0x7f
)

// Records of a frame: a magic number, the size, what it holds. The last has neither.
const (
	magicFPSIMD = 0x46508001 // FPSIMD_MAGIC
	sizeFPSIMD  = 528
	magicSVE    = 0x53564501 // SVE_MAGIC
	sizeEnd     = 16         // the last one's, and what keeps frames aligned
)

// A frameState is what rt_sigreturn puts into a thread.
type frameState struct {
	x       [31]uint64
	sp, pc  uint64
	pstate  uint64
	mask    uint64 // blocked signals
	records []byte // of the vector state, see frameRecordsOf; nil to clear it
}

// clearRecords are those of an empty vector state: the kernel takes no frame without one.
func clearRecords() []byte {
	le := binary.LittleEndian
	out := make([]byte, sizeFPSIMD)
	le.PutUint32(out[0:], magicFPSIMD)
	le.PutUint32(out[4:], sizeFPSIMD)
	return out
}

// size is how long the frame is, in bytes, a multiple of 16. The kernel reads it up to its last record.
func (f *frameState) size() int {
	n := len(f.records)
	if f.records == nil {
		n = sizeFPSIMD
	}
	return frameRecords + n + sizeEnd
}

// append adds the frame as rt_sigreturn reads it. The stack pointer must be at its start when rt_sigreturn is called.
func (f *frameState) append(out []byte) []byte {
	le := binary.LittleEndian
	frame := make([]byte, f.size())
	le.PutUint32(frame[frameStackFlags:], badStackFlags)
	le.PutUint64(frame[frameSigMask:], f.mask)
	at := frameRegs
	for _, v := range f.x {
		le.PutUint64(frame[at:], v)
		at += 8
	}
	for _, v := range [...]uint64{f.sp, f.pc, f.pstate} {
		le.PutUint64(frame[at:], v)
		at += 8
	}
	records := f.records
	if records == nil {
		records = clearRecords()
	}
	copy(frame[frameRecords:], records)
	return append(out, frame...)
}

func (f *frameState) setCall(c Call) {
	f.x[8] = uint64(c.Number)
	copy(f.x[:6], c.Args[:])
}
