package process

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func TestThreadRanGrowsWithWork(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, tid := os.Getpid(), unix.Gettid()
	before, ok := ThreadRan(pid, tid)
	for now := before; ok && now == before; { // it ends by what it does
		now, ok = ThreadRan(pid, tid)
	}
	if !ok {
		t.Error("the time of a thread that runs is not known")
	}
	if _, ok := ThreadRan(pid, 1<<22); ok {
		t.Error("a thread that there is not has run")
	}
}
