package target

// Code that a signal handler returns to: mov $15,%rax (or %eax); syscall (rt_sigreturn).
var restorerCode = [][]byte{
	{0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05},
	{0xB8, 0x0F, 0, 0, 0, 0x0F, 0x05},
}

// frameMark is 0: a frame is known by the code that its handler returns to.
const frameMark = 0

// Where, from the start of struct rt_sigframe, the interrupted registers are: behind the return address (8) and, in
// struct ucontext, flags, link and stack (40), R8 to R15 and eight more come RSP and RIP (arch/x86/include/asm/sigframe.h,
// uapi sigcontext.h).
const (
	spInFrame = 8 + 40 + 15*8
	pcInFrame = spInFrame + 8
)
