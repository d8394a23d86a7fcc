package recorder_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// summary is all that `record --json` says.
type summary struct {
	realtest.Summary
	LostExits int64 `json:"lost_exits"`
	Torn      int64 `json:"torn_events"`
	// Ring and RingEnough are bytes.
	Ring       int64  `json:"ring"`
	RingEnough int64  `json:"ring_enough"`
	Ended      bool   `json:"ended"`
	Left       string `json:"left"`
	Processes  struct {
		Forked     int `json:"forked"`
		Executed   int `json:"executed"`
		Late       int `json:"late"`
		Unrecorded int `json:"unrecorded"`
	} `json:"processes"`
	Libraries struct {
		Loaded    int     `json:"loaded"`
		Unloaded  int     `json:"unloaded"`
		Stops     int     `json:"stops"`
		LongestMS float64 `json:"longest_stop_ms"`
	} `json:"libraries"`
	Budget struct {
		FunctionsOff int    `json:"functions_off"`
		Samples      int    `json:"samples"`
		SitesRemoved int    `json:"sites_removed"`
		Seen         uint64 `json:"calls_seen"`
	} `json:"budget"`
}

// report is all that `report --json` says.
type report struct {
	realtest.Report
	Calls     int64  `json:"calls"`
	Events    int64  `json:"events"`
	LostExits int64  `json:"lost_exits"`
	Unmatched int64  `json:"unmatched_exits"`
	said      string // all of it
	ends      unfinished
}

// unfinished adds up the calls that had no exit, explicit or implied.
type unfinished struct {
	Functions []struct {
		Name       string `json:"name"`
		Unfinished int64  `json:"unfinished"`
		Implicit   int64  `json:"implicit"`
	} `json:"functions"`
}

func (u unfinished) of(name string) (n int64) {
	for _, f := range u.Functions {
		if f.Name == name {
			n += f.Unfinished + f.Implicit
		}
	}
	return n
}

// stop ends a recording as Ctrl-C does. The text has to be verified.
func stop(t testing.TB, r *realtest.Recording) summary {
	t.Helper()
	r.Stop()
	return ended(t, r)
}

// ended waits for the end of a recording that ends by itself.
func ended(t testing.TB, r *realtest.Recording) summary {
	t.Helper()
	r.Summary()
	s := realtest.Decode[summary](t, strings.Join(r.Stdout(), "\n"))
	if !s.TextVerified {
		t.Fatalf("text not verified: %+v\n%s", s, r.Stderr())
	}
	return s
}

// reportOf sums up a reel that must be whole. Its threads are those that have called; its ends tell of calls that had no exit of their own.
func reportOf(t testing.TB, file string) report {
	t.Helper()
	said := realtest.MustCallreel(t, "report", "--json", file).Stdout
	r := realtest.Decode[report](t, said)
	if len(r.Damaged) > 0 {
		t.Fatalf("reel damaged: %s", r.Damaged)
	}
	r.Threads = r.Callers()
	r.said, r.ends = said, realtest.Decode[unfinished](t, said)
	return r
}

// cycle records a process for a moment, and asserts that it was left as it was.
func cycle(t testing.TB, pid int, args ...string) summary {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cycle.reel")
	args = append([]string{"record", "--json", "--force", "-d", "30ms", "-o", file, "-p", strconv.Itoa(pid)}, args...)
	s := realtest.Decode[summary](t, realtest.MustCallreel(t, args...).Stdout)
	switch {
	case s.Ended:
		t.Fatalf("process %d has ended: %+v", pid, s)
	case !s.TextVerified:
		t.Fatalf("text not verified: %+v", s)
	case s.Functions.Traced == 0:
		t.Fatalf("nothing traced: %+v", s)
	}
	if err := textAsFile(pid); err != nil {
		t.Fatalf("after detaching: %v", err)
	}
	if s.Left != "" { // allowed, and said; the next recording or detach removes it
		t.Logf("left mapped: %s", s.Left)
		return s
	}
	wantUntouched(t, pid)
	return s
}

// cycles attaches and detaches n times and returns how many calls were recorded.
// Everything is recorded every other time, and only the modules that match own
// between, unless that is empty.
func cycles(t testing.TB, n, pid int, own string, args ...string) (calls int64) {
	t.Helper()
	realtest.GiveWay(t, pid)
	var attach, detach []float64
	for i := range n {
		flags := args
		if own != "" && i%2 == 1 {
			flags = append([]string{"-m", own}, args...)
		}
		s := cycle(t, pid, flags...)
		calls += s.Calls
		attach, detach = append(attach, s.AttachStopMS), append(detach, s.DetachStopMS)
	}
	t.Logf("%d cycles, %d calls; stopped to attach %s, to detach %s", n, calls, spread(attach), spread(detach))
	return calls
}

// spread is the median and the greatest of some times in milliseconds.
func spread(ms []float64) string {
	if len(ms) == 0 {
		return "never"
	}
	sorted := slices.Sorted(slices.Values(ms))
	return fmt.Sprintf("%.1f ms (at most %.1f)", sorted[len(sorted)/2], sorted[len(sorted)-1])
}

// pidFlag is "-p PID".
func pidFlag(p interface{ Pid() int }) []string { return []string{"-p", strconv.Itoa(p.Pid())} }

// A done recording and its reel.
type done struct {
	summary
	file string
}

// recordFor records for a time, such as "300ms".
func recordFor(t testing.TB, duration string, args ...string) done {
	t.Helper()
	r := realtest.StartRecording(t, append(args, "-d", duration)...)
	return done{ended(t, r), r.File}
}
