package target

// Code that a signal handler returns to: mov x8, #139; svc #0 (rt_sigreturn), as the vdso has it.
var restorerCode = [][]byte{{0x68, 0x11, 0x80, 0xD2, 0x01, 0, 0, 0xD4}}

// Where, from the frame record that the kernel puts below struct rt_sigframe's end, the interrupted registers are, a port has
// to find out: nothing is recorded here yet.
const (
	spInFrame = 0
	pcInFrame = 8
)
