package realtest

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// giving is how much nicer than the tests a process is that gives way: of a processor that it shares with one other it has a quarter. With
// much less a thread may take longer to stop, on a busy machine, than a recorder waits for it.
const giving = 5

// GiveWay has a process that computes without end, and all that it starts from now on, take just the processors that others leave. Where
// recorders come and go in it many times, they do most of what is to be done: with an equal share of a processor they would wait for their turn
// most of the time, since such a process has more threads than the machine has processors.
//
// It isn't for tests of what a process does in a given time.
func GiveWay(t testing.TB, pid int) {
	t.Helper()
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the niceness: getpriority(2)
	if err != nil {
		t.Fatalf("realtest: niceness: %v", err)
	}
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("realtest: process %d: %v", pid, err)
	}
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, tid, min(20-own+giving, 19)); err != nil && !errors.Is(err, unix.ESRCH) {
			t.Fatalf("realtest: process %d, thread %d: niceness: %v", pid, tid, err)
		}
	}
}
