package process

import "debug/elf"

// A processor is what this package must be told of the processor that it runs on. Everything else here is Linux's. There is one in each
// build, called host; its registers are Regs, whose methods are the other half of the seam.
type processor interface {
	// supported returns an error, which wraps ErrUnsupported, where there is no port yet: nothing else is asked of it then.
	supported() error
	// codeSupported is the same for code that is put into processes: what a port has last.
	codeSupported() error
	// callsSupported is the same for functions that a thread calls for us.
	callsSupported() error
	// elfMachine is the ELF machine of the programs that can be dealt with, and auditArch what seccomp filters are told of their calls.
	elfMachine() elf.Machine
	auditArch() uint32
	// getVector and setVector are the vector state of a stopped thread, in a form that the processor's signal frames are made of.
	getVector(tid int) ([]byte, error)
	setVector(tid int, vector []byte) error
	// runs says whether a thread with these registers runs code of that machine, or why not.
	runs(r *Regs) error

	// breakpoint is the number that the stack pointer has among the registers of perf's samples, and the length of a breakpoint's code.
	breakpoint() (sp int, size uint64)

	// syscallSize is how long the instruction is that calls the kernel, in bytes.
	syscallSize() uint64
	// atSyscallEntry tells the two stops of one system call apart (PTRACE_SYSCALL).
	atSyscallEntry(r *Regs) bool
	// syscallBefore reads the number of a system call out of the code in front of its end, where it is most likely set.
	syscallBefore(code []byte) (number uint64, ok bool)
	// What follows is about a thread that was stopped in a system call. waitsByBlock says whether the kernel may go on with it through
	// restart_syscall(2), and the number that its registers have: that of restart_syscall if it was interrupted before. rank says how fit the
	// thread is for a chain, 0 to 5, the best being 0. keepRestartable, resumable and leaveSleep are those of restart_linux.go and
	// orphan_linux.go: the last takes a thread out of the sleep at a chain's end, if it is in it.
	waitsByBlock(r *Regs) (number uint64, ok bool)
	inSyscall(t *Thread, r *Regs) (number uint64, ok bool)
	rank(t *Thread, r *Regs) int
	keepRestartable(t *Thread, r *Regs) error
	// noteCall notes what keepRestartable has to know from before a thread is stopped.
	noteCall(t *Thread)
	resumable(t *Thread, r Regs) (back, frame Regs, err error)
	leaveSleep(t *Thread, r *Regs) bool
	// beginsAnew says whether a thread that made a chain begins its call anew, and endForHandler ends that call, see reenter_linux.go.
	beginsAnew(t *Thread, r *Regs) bool
	endForHandler(t *Thread, r *Regs) bool
	// endsWithEINTR and goesOnByBlock are calls of that processor alone, see restart_linux.go; startupCalls are what its C libraries call
	// before they ask for their thread ID.
	endsWithEINTR() []uint64
	goesOnByBlock() []uint64
	startupCalls() []uint64

	// spin is an instruction that jumps to itself; syscallCode calls the kernel and is followed by code that needn't be run.
	spin() []byte
	syscallCode() []byte
	// redZone is how many bytes below the stack pointer a function may use.
	redZone() uint64
	// detour is code that makes a system call and jumps to entry, and the offset of what follows the call.
	detour(c detourCall, entry uint64) (code []byte, after int)
	// leaveDetour lets a thread that stands behind that call go on at entry, with the registers that the loader has left.
	leaveDetour(r *Regs, entry uint64)
	// setsThreadPointer says whether code may set its thread pointer, storeOfResult where the instruction at the beginning of code stores
	// the result of a system call, and how long it is: 0 if it comes later, and is to be carried out again.
	setsThreadPointer(code []byte) bool
	storeOfResult(code []byte, r *Regs) (addr uint64, size int, ok bool)
	// tidOffsets are where C libraries keep a thread's own ID, from the thread pointer.
	tidOffsets() []int32
	// blockBelow says whether they keep it below the thread pointer (ELF Handling For Thread-Local Storage, variant I), not above.
	blockBelow() bool

	// chain makes a chain of remote calls out of a plan, see chain; sleepCalls are ways to sleep at its end, the best first. What it is
	// made of are gadgets, which each processor has its own of. cookie finds the number that marks a thread in a chain.
	chain(p chainPlan) (*chain, error)
	sleepCalls() []sleepCall
	cookie(r *Regs) (cookie uint64, ok bool)

	// returnCode is what a function that a thread calls for us returns to; home is where in it a thread restores itself, and end is
	// behind its system call. invocation lays out what such a call needs on the thread's stack.
	returnCode() (code []byte, home, end uint64)
	invocation(p invocationPlan) (*invocationFrame, error)
	// isHome says whether a thread is about to restore itself; returned are the registers of a function that has returned there.
	isHome(r *Regs, f *invocationFrame) bool
	returned(r *Regs, vector []byte) Returned
	// waitsAnew says whether a thread that was in a system call with a timeout, with these registers, begins it anew; forgets says that the kernel
	// has forgotten what was left of the timeout. setsAllAtSyscalls says whether all registers can be set where a thread stops at a system call.
	waitsAnew(t *Thread, own *Regs, forgets bool) bool
	setsAllAtSyscalls() bool
	// forgetsTimeout are calls of that processor alone by which the kernel forgets what was left of another one's timeout.
	forgetsTimeout(number uint64) bool
}

// arch is the processor of this build. It has no state.
var arch host

var _ processor = arch
