package process

// A chain is a piece of stack that makes a thread perform system calls and then
// restore itself, with no help from outside:
//
//	the first call, from the start registers
//	→ store             its result to the call's cell
//	→ sigreturn         a restorer's code: the next frame's registers
//	   the next call …
//	   …
//	   a short sleep, in which the tracer stops the thread
//	→ sigreturn         the thread's own registers, vector state and mask
//
// The tracer takes the results from the cells, stops the thread in its sleep
// and restores it directly. If the tracer is gone, the sleep ends and the last
// frame does the same. Everything lies below the red zone of the interrupted
// code and above the stack pointer of every link.
type chain struct {
	base   uint64   // lowest address, the first stack pointer
	end    uint64   // above the highest address
	cells  uint64   // one 8-byte cell a call, in order
	data   []uint64 // addresses of the calls' data, 0 where there is none
	start  Regs     // to begin with, all signals blocked
	bytes  []byte   // what to write at base
	cookie uint64   // in the cookie register while the thread is in the chain
}

// A chainPlan is what a chain is made from.
type chainPlan struct {
	stack   uint64 // the thread's own stack pointer
	calls   []Call //
	rest    Regs   // the thread's own registers, in a form that needs no help from the kernel
	mask    uint64 // its own
	vector  []byte // its own vector state, as ptrace gives it
	sleep   sleepCall
	cookie  uint64
	gadgets *gadgets
}

const (
	allBlocks = ^uint64(0) // the kernel leaves SIGKILL and SIGSTOP out
	// cellEmpty is what a cell holds until the result is there. It is neither an
	// address nor an error number.
	cellEmpty = 0x8000_5ca1_ab1e_0000
	// sleepNanoseconds is how long the tracer has to stop the thread, and how
	// long a thread whose tracer died stays away. On a busy machine the tracer
	// may not get to run for some hundred milliseconds.
	sleepNanoseconds = 500_000_000
)

// A sleepCall is a way to sleep. Filters may forbid some.
type sleepCall struct {
	number  uintptr
	timeArg int       // which argument is the address of a timespec, -1 if none
	args    [6]uint64 // the others
}

func (c sleepCall) call(ts uint64) Call {
	out := Call{Number: c.number, Args: c.args}
	if c.timeArg >= 0 {
		out.Args[c.timeArg] = ts
	}
	return out
}
