package process

// TraceKind says why a traced thread is stopped, or that it is gone.
type TraceKind uint8

// The kinds of stops that Tracing.Wait gives.
const (
	TraceSignal TraceKind = iota // a signal is to be delivered: TraceStop.Signal, unless it is the tracer's own trap
	TraceBorn                    // a new thread, before its first instruction
	TraceChild                   // a new process, before its first instruction; it has a copy of the memory
	TraceGuest                   // a new process, before its first instruction; it runs in the same memory until it executes a program
	TraceExec                    // the program was replaced
	TraceOther                   // nothing to see to: it is to go on
	TraceEnded                   // the thread has ended; it is not to go on
)

// A TraceStop is a thread that has stopped.
type TraceStop struct {
	TID    int
	Kind   TraceKind
	Signal int   // for TraceSignal
	Code   int32 // of the signal: si_code of sigaction(2)
}

// How the processor and the kernel report traps to a tracer, as TraceStop.Code of a SIGTRAP.
const (
	TrapKernel  int32 = 0x80 // SI_KERNEL: an int3 instruction
	TrapSyscall int32 = 1    // TRAP_BRKPT: a step over a system call
	TrapStep    int32 = 2    // TRAP_TRACE: a step
	TrapHandler int32 = 5    // SIGTRAP: a step that led to the entry of a signal handler
)
