package foremost

import (
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Policies of sched(7), and what is written beside one.
const (
	other       = 0 // SCHED_OTHER
	roundRobin  = 2 // SCHED_RR
	resetOnFork = 0x40000000
)

// Come gives the calling goroutine's thread the processor before all others of ordinary priority, where that is permitted (CAP_SYS_NICE, or a
// limit RLIMIT_RTPRIO): it is to do what a stopped process waits for. It is over when back is called, by the same goroutine, or after at most,
// whatever comes first: what takes longer has no right to stand in the way of others. Who has chosen another kind of scheduling keeps it.
// Until back is called the goroutine is tied to its thread.
func Come(most time.Duration) (back func()) {
	runtime.LockOSThread()
	if now, _, err := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0); err != 0 || now != other {
		return runtime.UnlockOSThread
	}
	tid := unix.Gettid()
	if !schedule(tid, roundRobin|resetOnFork, 1) {
		return runtime.UnlockOSThread
	}
	var mu sync.Mutex
	over, ordinary := false, false
	end := func() {
		mu.Lock()
		defer mu.Unlock()
		if !over { // afterwards the ID may be somebody else's
			// Only who has the capability may leave the flag out again, and it does no harm.
			over, ordinary = true, schedule(tid, other, 0) || schedule(tid, other|resetOnFork, 0)
		}
	}
	timer := time.AfterFunc(most, end)
	return func() {
		timer.Stop()
		if end(); ordinary {
			runtime.UnlockOSThread()
		} // else the thread ends with the goroutine
	}
}

// schedule sets the policy of a thread of ours.
func schedule(tid int, policy uintptr, priority int32) bool {
	_, _, err := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, uintptr(tid), policy, uintptr(unsafe.Pointer(&priority)))
	return err == 0
}
