package target

import (
	"slices"

	"github.com/callreel/callreel/process"
)

// Code that a signal handler returns to: mov $15,%rax (or %eax); syscall (rt_sigreturn).
var restorerCode = [][]byte{
	{0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05},
	{0xB8, 0x0F, 0, 0, 0, 0x0F, 0x05},
}

// frameMark is 0: a frame is known by the code that its handler returns to.
const frameMark = 0

// leftOf is how far the mark of a frame is below the stack pointer of a thread at pc. A handler that returns pops it; the frame itself is in use
// until the system call behind.
func leftOf(pc uint64, restorers []uint64) uint64 {
	const longest = 9 // of restorerCode, in bytes
	if n, _ := slices.BinarySearch(restorers, pc+1); n > 0 && pc-restorers[n-1] < longest {
		return 8
	}
	return 0
}

// Where, from the start of struct rt_sigframe, the interrupted registers are: behind the return address (8) and, in
// struct ucontext, flags, link and stack (40), R8 to R15 and eight more come RSP and RIP (arch/x86/include/asm/sigframe.h,
// uapi sigcontext.h).
const (
	spInFrame = 8 + 40 + 15*8
	pcInFrame = spInFrame + 8
)

// goesInFrame is where in the frame an address is that the thread may be about to go to; 0 for nowhere. goesTo is the same of a thread: none here,
// since one instruction reads a slot of imports and jumps by it.
const goesInFrame = 0

func goesTo(*process.Regs) uint64 { return 0 }
