package process

import (
	"testing"
	"time"
)

func TestActivityIsReadFromItsLines(t *testing.T) {
	cpu, queued, err := parseSchedstat([]byte("85097 63845 1\n"))
	if cpu != 85097*time.Nanosecond || queued != 63845*time.Nanosecond || err != nil {
		t.Errorf("%v, %v, %v", cpu, queued, err)
	}
	n, err := parseCounter([]byte("nonvoluntary_ctxt_switches:\t3\nvoluntary_ctxt_switches:\t17\n"), "voluntary_ctxt_switches")
	if n != 17 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	start, err := parseStackStart([]byte("1 (a ) b) S 1 1 1 0 -1 4 1 0 0 0 1 2 3 4 20 0 1 0 5 6 7 8 9 10 140722 12\n"))
	if start != 140722 || err != nil {
		t.Errorf("%d, %v", start, err)
	}
}

func TestDamagedActivityIsAnError(t *testing.T) {
	for _, bad := range []string{"", "7", "7 x", "-", "x 7 1"} {
		if cpu, queued, err := parseSchedstat([]byte(bad)); err == nil {
			t.Errorf("schedstat %q: %v, %v", bad, cpu, queued)
		}
	}
	for _, bad := range []string{"", "a", "a:", "a: x", "a: -1", "b: 1", "aa: 1"} {
		if n, err := parseCounter([]byte(bad), "a"); err == nil {
			t.Errorf("counter %q: %d", bad, n)
		}
	}
	whole := "1 (a) S 1 1 1 0 -1 4 1 0 0 0 1 2 3 4 20 0 1 0 5 6 7 8 9 10 140722"
	for n := range len(whole) - len("140722") {
		if start, err := parseStackStart([]byte(whole[:n])); err == nil {
			t.Errorf("stat %q: %d", whole[:n], start)
		}
	}
}

func TestWaitsThatAStopWouldMakeLongerAreKnown(t *testing.T) {
	for _, c := range []struct {
		name    string
		call    string
		at      int // of the argument
		timeout uint64
		want    bool
	}{
		{"epoll_wait", "epoll_wait", 3, 100, true},
		{"epoll_wait that only looks", "epoll_wait", 3, 0, false},
		{"epoll_wait without end", "epoll_wait", 3, 1<<64 - 1, false},
		{"epoll_wait without end, of 32 bits", "epoll_wait", 3, 1<<32 - 1, false},
		{"epoll_pwait2", "epoll_pwait2", 3, 0x7000, true},
		{"epoll_pwait2 without end", "epoll_pwait2", 3, 0, false},
		{"rt_sigtimedwait", "rt_sigtimedwait", 2, 0x7000, true},
		{"recvmmsg", "recvmmsg", 4, 0x7000, true},
		{"io_uring_enter", "io_uring_enter", 3, 1 | 8, true},
		{"io_uring_enter without end", "io_uring_enter", 3, 1, false},
		{"connect", "connect", 0, 3, true},
		{"poll goes on with the rest", "poll", 2, 100, false},
		{"so does clock_nanosleep", "clock_nanosleep", 2, 0x7000, false},
		{"futex", "futex", 3, 0x7000, false},
	} {
		number, ok := numberOf(c.call)
		if !ok {
			continue // this processor's Linux doesn't have it
		}
		w := Waiting{InSyscall: true, Number: number}
		w.Args[c.at] = c.timeout
		if got := w.StartsOver(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		w.InSyscall = false
		if w.StartsOver() {
			t.Errorf("%s: a wait for a page", c.name)
		}
	}
}

func FuzzActivity(f *testing.F) {
	f.Add([]byte("1 (a) S 1 1 1 0 -1 4 1 0 0 0 1 2 3 4 20 0 1 0 5 6 7 8 9 10 140722"), []byte("voluntary_ctxt_switches:\t17\n"), []byte("85097 63845 1\n"))
	f.Fuzz(func(t *testing.T, stat, counters, schedstat []byte) {
		if _, err := parseStackStart(stat); err == nil && len(stat) < 26 {
			t.Errorf("%q has 26 fields", stat)
		}
		if _, err := parseCounter(counters, "voluntary_ctxt_switches"); err == nil && len(counters) < len("voluntary_ctxt_switches:0") {
			t.Errorf("%q has the counter", counters)
		}
		if _, _, err := parseSchedstat(schedstat); err == nil && len(schedstat) < 3 {
			t.Errorf("%q has two numbers", schedstat)
		}
	})
}

// numberOf is the number of a system call on this processor.
func numberOf(name string) (uint64, bool) {
	for number := range uint64(512) {
		if syscallName(number) == name {
			return number, true
		}
	}
	return 0, false
}
