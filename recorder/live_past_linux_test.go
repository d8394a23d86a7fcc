package recorder_test

import (
	"encoding/binary"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// pastSummary is what record --when says of what it has kept.
type pastSummary struct {
	armedSummary
	Past struct {
		Memory        int    `json:"memory"`
		Used          int    `json:"used"`
		Events        uint64 `json:"events"`
		LastsNS       int64  `json:"lasts_ns"`
		ReachesBackNS int64  `json:"reaches_back_ns"`
	} `json:"past"`
}

// eventsOf is how many events a reel has.
func eventsOf(t *testing.T, file string) (n uint64) {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, th := range f.Threads() {
		f.ReadThread(th.Key, func(events []reel.Event, _ bool) bool {
			n += uint64(len(events))
			return true
		})
	}
	return n
}

// made is how many calls the target has logged.
func (a *armedTarget) made(t *testing.T) (n uint64) {
	t.Helper()
	const workers = 5
	f, err := os.Open(a.log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := make([]byte, 16*workers)
	if _, err := f.ReadAt(head, 0); err != nil {
		t.Fatal(err)
	}
	for w := range workers {
		n += binary.LittleEndian.Uint64(head[8*(workers+w):])
	}
	return n
}

// Dumps hold what the rings held long before, by the target's own log: all that there was while the memory suffices, and then all since the
// time up to which they say that something is missing.
func TestDumpsReachBackFurtherThanTheRings(t *testing.T) {
	needLive(t)
	const ringEvents = 2 << 20 / reel.EventSize
	for _, test := range []struct {
		name, memory string
		wraps        bool
	}{
		{"all", "64M", false},
		{"the last of it", "3M", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := startArmed(t)
			r := a.arm(t, "--when", "request > 20ms", "--keep", "10m", "--ring", "2M", "--memory", test.memory)
			a.do("100 1")
			a.do("1 30")
			waitDumps(t, r, 1)
			for before := a.made(t); a.made(t)-before < 8*ringEvents; time.Sleep(50 * time.Millisecond) {
				a.do("100 0")
			}
			a.do("1 30")
			waitDumps(t, r, 2)
			realtest.MustCallreel(t, append([]string{"dump", "--last", "1s"}, pidFlag(a)...)...)
			r.Signal(syscall.SIGUSR2)
			waitDumps(t, r, 4)
			r.Stop()
			s := realtest.Decode[pastSummary](t, strings.Join(r.Stdout(), "\n"))
			wantUntouched(t, a.Pid())
			a.Finish()
			log := a.readLog(t)
			most := 0
			for _, file := range s.Dumps {
				n := wantWhole(t, file, log)
				d := readDump(t, file)
				t.Logf("%s: %d calls as logged, %d events, missing %+v", file, n, eventsOf(t, file), d.Missing)
				most = max(most, n)
			}
			t.Logf("%+v", s.Past)
			if most < 2*ringEvents {
				t.Errorf("only %d calls, where the rings hold %d", most, ringEvents/2)
			}
			if wrapped := s.Past.ReachesBackNS > 0; wrapped != test.wraps {
				t.Errorf("what is kept: %+v", s.Past)
			}
			if s.Past.Used > s.Past.Memory {
				t.Errorf("%d bytes are used of %d", s.Past.Used, s.Past.Memory)
			}
		})
	}
}

// When a signal ends the process, all that was kept is dumped, up to its last calls.
func TestAllThatIsKeptOutlivesTheProcess(t *testing.T) {
	needLive(t)
	const ringEvents = 2 << 20 / reel.EventSize
	a := startArmed(t)
	r := a.arm(t, "--when", "request > 1h", "--keep", "10m", "--ring", "2M")
	for before := a.made(t); a.made(t)-before < 4*ringEvents; time.Sleep(20 * time.Millisecond) {
		a.do("100 0")
	}
	a.Signal(syscall.SIGSEGV)
	a.Wait()
	r.Wait()
	s := realtest.Decode[pastSummary](t, strings.Join(r.Stdout(), "\n"))
	if len(s.Dumps) != 1 || !s.Ended {
		t.Fatalf("%+v\n%s", s, r.Stderr())
	}
	log := a.readLog(t)
	n := wantWhole(t, s.Dumps[0], log)
	d := readDump(t, s.Dumps[0])
	t.Logf("%d calls, missing %+v; %+v", n, d.Missing, s.Past)
	if n < ringEvents {
		t.Errorf("only %d calls, where the rings hold %d", n, ringEvents/2)
	}
	for tid, calls := range log {
		have := d.calls[tid]
		if n := len(calls); n > 0 && calls[n-1].from > d.From && (len(have) == 0 || have[len(have)-1].to < calls[n-1].from) {
			t.Errorf("thread %d: its last call isn't in the dump", tid)
		}
	}
}
