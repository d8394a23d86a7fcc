package process

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// processorName is this machine's processor as messages have it.
func processorName() string {
	if runtime.GOARCH == "amd64" {
		return "x86-64"
	}
	return runtime.GOARCH
}

// The kinds of failure a caller may want to tell apart with errors.Is. The
// errors returned wrap them with the process, the cause and what to do.
var (
	// ErrUnsupported: what was asked of a live process can't be done on this system and processor.
	ErrUnsupported = errors.New("not supported on " + runtime.GOOS + "/" + runtime.GOARCH)
	// ErrNoProcess: no such process, or it ended meanwhile.
	ErrNoProcess = errors.New("no such process")
	// ErrZombie: the process has ended and waits to be reaped by its parent.
	// It is also an ErrNoProcess.
	ErrZombie = fmt.Errorf("%w: it has ended and only waits for its parent", ErrNoProcess)
	// ErrKernelThread: the PID belongs to the kernel and has no user memory.
	ErrKernelThread = errors.New("a kernel thread has no user program")
	// ErrNotPermitted: the kernel denies access to the process.
	ErrNotPermitted = errors.New("not permitted")
	// ErrTraced: another tracer holds the process.
	ErrTraced = errors.New("already traced")
	// ErrForeignArch: the program is none of 64 bits for this machine's processor.
	ErrForeignArch = errors.New("not a 64-bit " + processorName() + " program")
	// ErrSelf: a process cannot trace itself.
	ErrSelf = errors.New("a process cannot trace itself")
	// ErrThreadGroup: the number is the ID of a thread, not of a process.
	ErrThreadGroup = errors.New("a thread, not a process")
	// ErrStopTimeout: a thread did not stop in time. See StopTimeoutError.
	ErrStopTimeout = errors.New("thread does not stop")
	// ErrMemoryShared: another process runs in the same memory, where stopping this
	// one does not stop it.
	ErrMemoryShared = errors.New("its memory is shared with another process")
	// ErrExec: the process replaced its program while it was being stopped;
	// nothing known about its memory holds any more.
	ErrExec = errors.New("process has replaced its program")
	// ErrNoMapping: no memory is mapped at the address, or it may not be accessed.
	ErrNoMapping = errors.New("memory not accessible")
	// ErrFileGone: the file of a mapping can no longer be reached.
	ErrFileGone = errors.New("mapped file not reachable")
	// ErrSeccomp: the target's seccomp filter would not let the system call
	// pass, or cannot be read. See SeccompError.
	ErrSeccomp = errors.New("forbidden by the target's seccomp filter")
	// ErrNoThreadID: the C library's copy of the thread ID was not found.
	ErrNoThreadID = errors.New("no thread ID found near the thread pointer")
	// ErrNoSafeThread: no thread is in a state in which it can make a system
	// call for us without risk. Trying again later may work.
	ErrNoSafeThread = errors.New("no thread can safely make a system call")
	// ErrNoGadget: the instructions that a kill-safe remote system call needs
	// were not found in the target's code.
	ErrNoGadget = errors.New("no instructions for a kill-safe system call found")
	// ErrLate: the thread that made system calls for us was not stopped in time
	// behind them, and has run on. The calls have been made, but what they
	// returned is unknown: the thread may have written over it.
	ErrLate = errors.New("results of remote system calls are lost, the thread was held up for too long")
	// ErrReleased: a Stopped or Thread was used after the process was let go,
	// or the thread has ended.
	ErrReleased = errors.New("thread is no longer stopped")
	// ErrTooMuch: what the process makes the kernel tell of it is more than is kept of
	// one process, see Process.LimitMemory.
	ErrTooMuch = errors.New("too much to be kept of one process")
	// ErrNotReady: a launched program never reached the point at which its
	// thread state is set up, as with Go programs.
	ErrNotReady = errors.New("program never set up its thread ID")
	// ErrNoExec: a thread that was about to replace its program did not, or not in time.
	ErrNoExec = errors.New("thread has not replaced its program")
	// ErrEnded: a launched program ended before it was ready.
	ErrEnded = errors.New("program ended before its entry point")
	// ErrCommandNotFound: there is no such command (the shell's code 127).
	ErrCommandNotFound = errors.New("command not found")
	// ErrCommandNotExecutable: the command cannot be executed (the shell's code 126).
	ErrCommandNotExecutable = errors.New("command cannot be executed")
)

// A StopTimeoutError names the thread that did not stop. It is an ErrStopTimeout.
type StopTimeoutError struct {
	PID, TID int
	Name     string // the thread's name
	State    byte   // as in /proc/PID/stat: D, R, S …; 0 if unknown
	Wchan    string // the kernel function it waits in, or empty
	Syscall  int    // the system call's number, -1 if none or unknown
	After    string // how long was waited
}

func (e *StopTimeoutError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "process %d: thread %d (%s) does not stop after %s", e.PID, e.TID, e.Name, e.After)
	if e.State != 0 {
		fmt.Fprintf(&b, ": state %c", e.State)
	}
	if e.Wchan != "" && e.Wchan != "0" {
		fmt.Fprintf(&b, ", waits in %s", e.Wchan)
	}
	if e.Syscall >= 0 {
		fmt.Fprintf(&b, ", in system call %s", syscallName(uint64(e.Syscall)))
	}
	b.WriteString("; all its threads run on, try again later")
	return b.String()
}

// Is makes errors.Is(err, ErrStopTimeout) true.
func (e *StopTimeoutError) Is(target error) bool { return target == ErrStopTimeout }

// A SeccompError names the system call that the target's seccomp state
// forbids. It is an ErrSeccomp.
type SeccompError struct {
	TID    int
	Number uint64 // the system call
	Why    string
}

func (e *SeccompError) Error() string {
	return fmt.Sprintf("thread %d: system call %s: %v: %s", e.TID, syscallName(e.Number), ErrSeccomp, e.Why)
}

// Is makes errors.Is(err, ErrSeccomp) true.
func (e *SeccompError) Is(target error) bool { return target == ErrSeccomp }
