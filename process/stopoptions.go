package process

import "time"

// StopOptions says how Process.Stop goes about it.
type StopOptions struct {
	// Timeout bounds the wait for all threads to stop, in which most of the time
	// the process runs, and each later wait for a single thread. 0 means
	// DefaultStopTimeout.
	Timeout time.Duration

	// AnyStack lets a remote system call run on a thread whose stack pointer is
	// not in a C library's thread stack: on coroutine and goroutine stacks, and
	// on alternate signal stacks. The call's frames take about as much room
	// below the stack pointer as the delivery of a signal; code that puts
	// signals on an alternate stack (Go does) may not have it. Such threads
	// are left out by default.
	AnyStack bool

	// OwnsStack, if not nil, says of a stack that is no C library's whether the memory from base up to the thread's stack pointer is unused stack of
	// what runs on the thread: then a remote system call may run there, too.
	OwnsStack func(p *Process, t *Thread, base uint64) bool

	// UnsafeSyscall allows remote system calls by bare register changes where
	// the kill-safe way lacks its instructions (ErrNoGadget). If the caller is
	// killed during such a call, the target is left with foreign registers.
	UnsafeSyscall bool

	// AtOnce is for a process that ends before much can be found out about it: it is stopped first. What Stop has to know of all other
	// processes is looked at while it stands, for as long as that takes.
	AtOnce bool

	// Of, if not nil, is the process whose thread AwaitExec is to trace. It is looked at when the thread has been seized and can't go
	// away any more: a process that has got the same ID since isn't touched. Stop knows its process.
	Of *Handle

	// GoAtEntry is Command.GoAtEntry for AwaitExec; Stop has no use for it.
	GoAtEntry bool
}

// How long Stop waits for threads: by default, and as a value for callers who must
// not give up lightly since they remove what is theirs from the process.
const (
	DefaultStopTimeout = 5 * time.Second
	PatientStopTimeout = 10 * time.Second
)

func (o StopOptions) timeout() time.Duration {
	if o.Timeout <= 0 {
		return DefaultStopTimeout
	}
	return o.Timeout
}
