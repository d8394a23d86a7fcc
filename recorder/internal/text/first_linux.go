package text

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// comeFirst gives the calling goroutine's thread the processor before all others of ordinary priority, where that is permitted
// (CAP_SYS_NICE, or a limit RLIMIT_RTPRIO): it is to do what a stopped process waits for. It must be a short time, without waiting for
// anything. back ends it. Who has chosen another kind of scheduling keeps it.
func comeFirst() (back func()) {
	const (
		other       = 0 // SCHED_OTHER
		roundRobin  = 2 // SCHED_RR
		resetOnFork = 0x40000000
	)
	runtime.LockOSThread()
	if now, _, err := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0); err != 0 || now != other {
		return runtime.UnlockOSThread
	}
	if !schedule(roundRobin|resetOnFork, 1) {
		return runtime.UnlockOSThread
	}
	return func() {
		// Only who has the capability may leave the flag out again, and it does no harm.
		if schedule(other, 0) || schedule(other|resetOnFork, 0) {
			runtime.UnlockOSThread()
		} // else the thread ends with the goroutine
	}
}

// schedule sets the policy of this thread.
func schedule(policy uintptr, priority int32) bool {
	_, _, err := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, policy, uintptr(unsafe.Pointer(&priority)))
	return err == 0
}
