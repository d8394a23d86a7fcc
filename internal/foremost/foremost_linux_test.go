package foremost

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func policy(t *testing.T) uintptr {
	t.Helper()
	now, _, err := unix.RawSyscall(unix.SYS_SCHED_GETSCHEDULER, 0, 0, 0)
	if err != 0 {
		t.Fatal(err)
	}
	return now &^ resetOnFork
}

// A thread that came first is as it was before.
func TestComingFirstIsOver(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := policy(t)
	back := Come(time.Minute)
	meanwhile := policy(t)
	inner := Come(time.Minute) // as it is called where it has been before
	inner()
	if now := policy(t); now != meanwhile {
		t.Errorf("policy %d once the inner one was over, %d before it", now, meanwhile)
	}
	back()
	if now := policy(t); now != before {
		t.Errorf("policy %d afterwards, %d before; %d meanwhile", now, before, meanwhile)
	}
}

// What takes long ends being first by itself.
func TestComingFirstEndsByItself(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := policy(t)
	back := Come(time.Millisecond)
	defer back()
	for began := time.Now(); policy(t) != before; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatalf("policy %d, %d before", policy(t), before)
		}
	}
}
