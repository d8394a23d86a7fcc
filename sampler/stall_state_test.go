package sampler

import (
	"testing"

	"github.com/callreel/callreel/process"
)

func TestLocksAreToldFromWhatWorkersWaitIn(t *testing.T) {
	const private, waitBitset = 128, 9
	futex := func(op, value uint64) *process.Waiting {
		return &process.Waiting{InSyscall: true, Number: callNumber("futex"), Args: [6]uint64{0x1000, op, value}}
	}
	stack := func(names ...string) []Frame {
		var out []Frame
		for _, n := range names {
			out = append(out, Frame{Function: n})
		}
		return out
	}
	for _, c := range []struct {
		name  string
		at    *process.Waiting
		stack []Frame
		rest  rest
	}{
		{"glibc's mutex", futex(private, 2), stack("__GI___lll_lock_wait", "pthread_mutex_lock", "work"), neverRest},
		{"glibc's condition", futex(private|waitBitset, 0), stack("__futex_abstimed_wait_common", "pthread_cond_wait@@GLIBC_2.3.2", "std::condition_variable::wait(std::unique_lock<std::mutex>&)"), maybeRest},
		{"a semaphore", futex(private|waitBitset, 0), stack("do_futex_wait", "sem_wait"), maybeRest},
		{"musl's mutex", futex(private, 0x80000007), stack("__timedwait", "pthread_mutex_timedlock"), neverRest},
		{"a lock without names", futex(private, 2), nil, neverRest},
		{"a lock that inherits priority", futex(private|futexLockPI, 0), nil, neverRest},
		{"a wait without names", futex(private|waitBitset, 0), nil, maybeRest},
		{"a caller called mutex, far away", futex(private|waitBitset, 0), stack("a", "b", "c", "d", "e", "f", "g", "h", "mutex_test"), maybeRest},
	} {
		a := &process.Activity{State: 'S', Waiting: c.at}
		if got := blockageOf(a, nil, c.stack); got.state != StallLock || got.rest != c.rest {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestStatesThatNeedNoSystemCall(t *testing.T) {
	for _, c := range []struct {
		a    process.Activity
		want StallState
	}{
		{process.Activity{State: 'T'}, StallStopped},
		{process.Activity{State: 't'}, StallStopped},
		{process.Activity{State: 'D'}, StallDisk},
		{process.Activity{State: 'D', Waiting: &process.Waiting{}}, StallDisk},
		{process.Activity{State: 'D', Waiting: &process.Waiting{InSyscall: true, Number: callNumber("clone")}}, StallChild},
		{process.Activity{State: 'S', Waiting: &process.Waiting{InSyscall: true, Number: callNumber("fsync")}}, StallDisk},
		{process.Activity{State: 'S', Waiting: &process.Waiting{InSyscall: true, Number: 1 << 60}}, StallBlocked},
	} {
		if got := blockageOf(&c.a, nil, nil); got.state != c.want || got.rest != neverRest {
			t.Errorf("%+v: %+v, want %s", c.a, got, c.want)
		}
	}
}

func TestInterruptedCallsAreKnownByTheirFunctions(t *testing.T) {
	at := &process.Waiting{InSyscall: true, Number: callNumber("restart_syscall")}
	for function, want := range map[string]StallState{
		"clock_nanosleep@@GLIBC_2.17": StallSleep, "__poll": StallSleep, "pthread_cond_timedwait": StallLock, "": StallBlocked,
	} {
		a := &process.Activity{State: 'S', Waiting: at}
		if got := blockageOf(a, nil, []Frame{{Function: function}}); got.state != want {
			t.Errorf("%q: %+v", function, got)
		}
	}
}

// callNumber is the number of a system call on this processor.
func callNumber(name string) uint64 {
	for number := range uint64(512) {
		if w := (process.Waiting{InSyscall: true, Number: number}); w.Syscall() == name {
			return number
		}
	}
	return 1 << 32
}
