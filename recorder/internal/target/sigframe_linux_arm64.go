package target

import "github.com/callreel/callreel/process"

// restorerCode isn't looked for: the address that a handler returns to is in the link register, and on the stack only if the handler has put
// it there.
var restorerCode [][]byte

// leftOf is 0: a handler that returns leaves its frame where the stack pointer is.
func leftOf(uint64, []uint64) uint64 { return 0 }

// frameMark is by what a frame is known: the head of the first record behind struct sigcontext, which the kernel always writes: FPSIMD_MAGIC and the
// record's size, 528 (arch/arm64/include/uapi/asm/sigcontext.h; setup_sigframe_layout in arch/arm64/kernel/signal.c). getcontext(3) writes the
// same into what it fills: that is no handler's, but where it leads is where something may go on, too.
const frameMark = 528<<32 | 0x4650_8001

// Where the interrupted registers are, from that mark, which is 288 bytes from the beginning of struct sigcontext: behind fault_address and X0 to
// X30 come SP and PC.
const (
	spInFrame = 8 + 31*8 - 288
	pcInFrame = spInFrame + 8
)

// goesInFrame is where in the frame an address is that the thread may be about to go to, goesTo the same of a thread: an entry of the PLT reads its
// slot into x17, and goes there two instructions later. What was in the slot is a stub as long as its calls are recorded.
const goesInFrame = 8 + 17*8 - 288

func goesTo(r *process.Regs) uint64 { return r.Regs[17] }
