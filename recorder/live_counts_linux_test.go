package recorder_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// Calls recorded and calls dropped together are the calls made, to the last
// one, whatever the clock, the ring and the mode.
func TestRecordedAndDroppedAreTheCallsMade(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		name  string
		flags []string
		drops bool // there must be some
		whole bool // there must be none
		bytes float64
	}{
		{name: "default ring", bytes: 3},
		{name: "clock exit", flags: []string{"--clock", "exit"}, bytes: 3},
		{name: "clock none", flags: []string{"--clock", "none"}, bytes: 3},
		{name: "small ring", flags: []string{"--ring", "512K"}, drops: true, bytes: 3},
		{name: "small ring, clock none", flags: []string{"--ring", "512K", "--clock", "none"}, bytes: 3},
		{name: "lossless", flags: []string{"--lossless"}, whole: true, bytes: 3},
		{name: "lossless, small ring", flags: []string{"--lossless", "--ring", "512K"}, whole: true, bytes: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "count"), "3000000", "300000")
			r := realtest.StartRecording(t, slices.Concat(pidFlag(p), c.flags, []string{"-f", "leaf", "-f", "nest"})...)
			wantProbed(t, p.Pid())
			if c.drops {
				stall(t, r, func() { p.Go(); p.WaitLine("counted ") })
			} else {
				p.Go()
				p.WaitLine("counted ")
			}
			s := stop(t, r)
			wantUntouched(t, p.Pid())
			made := p.Finish()
			if want := made["leaf"] + made["nest"]; s.Calls+s.Dropped != want {
				t.Errorf("%d calls recorded and %d dropped are %d, the program made %d", s.Calls, s.Dropped, s.Calls+s.Dropped, want)
			}
			if s.Functions.Traced != 2 || s.Threads != 1 {
				t.Errorf("%d functions and %d threads, want 2 and 1", s.Functions.Traced, s.Threads)
			}
			if c.drops && s.Dropped == 0 {
				t.Error("no drops, though the recorder stood still with a ring of 512K")
			}
			if c.whole && s.Dropped != 0 {
				t.Errorf("--lossless dropped %d", s.Dropped)
			}
			if perEvent := float64(s.Bytes) / float64(s.Events); perEvent > c.bytes {
				t.Errorf("%.2f bytes an event, want at most %.1f", perEvent, c.bytes)
			}
			rep := reportOf(t, r.File)
			wantEveryCallEnded(t, s, rep)
			if rep.Calls != s.Calls || rep.Dropped != s.Dropped || rep.Events != s.Events {
				t.Errorf("report: %d calls, %d dropped, %d events; summary: %d, %d, %d",
					rep.Calls, rep.Dropped, rep.Events, s.Calls, s.Dropped, s.Events)
			}
			for _, name := range []string{"leaf", "nest"} {
				if got := rep.Report.Calls(name); got > made[name] || s.Dropped == 0 && got != made[name] {
					t.Errorf("%d calls of %s in the report, the program made %d", got, name, made[name])
				}
			}
			t.Logf("%d calls, %d dropped, %.2f bytes an event", s.Calls, s.Dropped, float64(s.Bytes)/float64(s.Events))
		})
	}
}

// wantEveryCallEnded asserts what is true of a recording that was stopped while
// no recorded call was open: each entry has its exit. Exits of calls that were
// dropped may be there too, where room came between entry and exit.
func wantEveryCallEnded(t *testing.T, s summary, rep report) {
	t.Helper()
	if s.LostExits != rep.LostExits || s.Torn != 0 {
		t.Errorf("%d exits lost, %d in the report, %d events torn", s.LostExits, rep.LostExits, s.Torn)
	}
	if s.LostExits != 0 {
		knownFault(t, "%d exits of accepted calls were lost: the reserve of a small ring does not last", s.LostExits)
		return
	}
	if s.Events != 2*s.Calls+rep.Unmatched || rep.Unmatched > s.Dropped {
		t.Errorf("%d events of %d calls, %d exits without entry, %d calls dropped", s.Events, s.Calls, rep.Unmatched, s.Dropped)
	}
	for _, f := range rep.ends.Functions {
		if f.Unfinished+f.Implicit != 0 {
			t.Errorf("%s has %d entries without exit and %d ended by another's", f.Name, f.Unfinished, f.Implicit)
		}
	}
}

// stall makes drops certain: the recorder stands still while do runs.
func stall(t *testing.T, r *realtest.Recording, do func()) {
	t.Helper()
	r.Signal(sigStop)
	waitState(t, r.Pid(), 'T')
	do()
	r.Signal(sigCont)
}

// Threads that are all born and all die while recording.
func TestEveryCallOfEveryThreadIsCounted(t *testing.T) {
	needLive(t)
	for _, flags := range [][]string{nil, {"--lossless"}, {"--ring", "1M"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "threads"), "fixed", "8", "20000")
			r := realtest.StartRecording(t, slices.Concat(pidFlag(p), flags, []string{"-f", "counted_*"})...)
			p.Go()
			p.WaitLine("counted ")
			s := stop(t, r)
			wantUntouched(t, p.Pid())
			made := p.Finish()
			want := made["counted_a"] + made["counted_b"] + made["counted_c"] + made["counted_d"]
			if s.Calls+s.Dropped != want {
				t.Errorf("%d calls recorded and %d dropped, the program made %d", s.Calls, s.Dropped, want)
			}
			rep := reportOf(t, r.File)
			wantEveryCallEnded(t, s, rep)
			each := map[string]int64{}
			for _, th := range rep.Threads {
				each[th.Name] += th.Calls
			}
			for id := range 8 {
				name := "work-" + string(rune('0'+id))
				if got := each[name]; got > want/8 || s.Dropped == 0 && got != want/8 {
					t.Errorf("thread %s has %d calls, it made %d", name, got, want/8)
				}
			}
			if n := len(rep.Threads); n > 8 || n < 8 && s.Dropped == 0 { // of one that has dropped all that it called nothing is known
				t.Errorf("%d threads, want 8: %+v", len(rep.Threads), rep.Threads)
			}
			for name, n := range made {
				if got := rep.Report.Calls(name); strings.HasPrefix(name, "counted_") && s.Dropped == 0 && got != n {
					t.Errorf("%d calls of %s in the report, the program made %d", got, name, n)
				}
			}
		})
	}
}

// Threads that were at work before, and are after: what was recorded of each is
// an unbroken run of its rounds, but for one at either end.
func TestThreadsAttachedToInTheirWorkAreCountedExactly(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "4")
	s := recordFor(t, "300ms", append(pidFlag(p), "--lossless", "-f", "counted_*")...)
	wantUntouched(t, p.Pid())
	made := p.Finish()
	if s.Dropped != 0 || s.Calls == 0 {
		t.Fatalf("--lossless: %d calls, %d dropped", s.Calls, s.Dropped)
	}
	rep := reportOf(t, s.file)
	if len(rep.Threads) != 4 {
		t.Errorf("%d threads, want 4: %+v", len(rep.Threads), rep.Threads)
	}
	rounds := rep.Report.Calls("counted_c")
	for name, each := range map[string]int64{"counted_a": 5, "counted_b": 4, "counted_c": 1, "counted_d": 1} {
		got := rep.Report.Calls(name)
		if got > made[name] {
			t.Errorf("%d calls of %s recorded, %d made", got, name, made[name])
		}
		if off := got - each*rounds; off < -4*each || off > 4*each {
			t.Errorf("%d calls of %s in %d rounds of %d each: off by more than a round of each thread", got, name, rounds, each)
		}
		// A call that was open when recording ended, and one that was when it began, for each thread.
		if n := rep.ends.of(name); n > 4 {
			t.Errorf("%s: %d calls without an exit", name, n)
		}
	}
	// At most as many exits without entry as calls can have been open: counted_d and what it calls.
	if rep.Unmatched > 2*4 {
		t.Errorf("%d exits without entry", rep.Unmatched)
	}
}

// Threads that are born and die by the hundred: each is there under its own
// name with every call it made.
func TestShortLivedThreadsAreRecordedWhole(t *testing.T) {
	needLive(t)
	const alive, perThread = 4, 200 * 11
	p := realtest.Start(t, realtest.Build(t, "threads"), "churn", "4")
	s := recordFor(t, "400ms", append(pidFlag(p), "--lossless", "-f", "counted_*")...)
	wantUntouched(t, p.Pid())
	p.Finish()
	rep := reportOf(t, s.file)
	if len(rep.Threads) < 20 || s.Dropped != 0 {
		t.Fatalf("%d threads in the report, %d calls dropped", len(rep.Threads), s.Dropped)
	}
	names, cut := map[string]bool{}, 0
	for _, th := range rep.Threads {
		if th.Calls != perThread {
			cut++ // it was at work when recording began or ended
		}
		if !strings.HasPrefix(th.Name, "work-") || names[th.Name] || th.Calls > perThread {
			t.Errorf("thread %d %q has %d calls; each has a name of its own and %d calls", th.TID, th.Name, th.Calls, perThread)
		}
		names[th.Name] = true
	}
	if cut > 2*alive {
		t.Errorf("%d of %d threads are not whole, %d were alive at the beginning and at the end", cut, len(rep.Threads), alive)
	}
	if s.Threads != len(rep.Threads) {
		t.Errorf("summary: %d threads, report: %d", s.Threads, len(rep.Threads))
	}
}

// With everything recorded a thread's first event comes before it has a name.
func TestThreadsThatNameThemselvesLateAreFoundUnderTheirNames(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "late", "4")
	r := realtest.StartRecording(t, append(pidFlag(p), "-m", "threads*", "-x", "counted_[abc]")...)
	p.Go()
	p.WaitLine("named")
	stop(t, r)
	p.Finish()
	names := map[string]bool{}
	for _, th := range reportOf(t, r.File).Threads {
		names[th.Name] = true
	}
	for id := range 4 {
		if name := "work-" + string(rune('0'+id)); !names[name] {
			t.Errorf("no thread %s in %v", name, names)
		}
	}
}

// The same for threads that live for less than a millisecond.
func TestShortLivedThreadsThatNameThemselvesLateAreFoundUnderTheirNames(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "churn", "4")
	s := recordFor(t, "300ms", pidFlag(p)...)
	p.Finish()
	unnamed := 0
	threads := reportOf(t, s.file).Threads
	for _, th := range threads {
		if th.TID != p.Pid() && !strings.HasPrefix(th.Name, "work-") {
			unnamed++
		}
	}
	if unnamed > 8 { // those that were cut off before they had named themselves
		knownFault(t, "%d of %d threads are not found under their names", unnamed, len(threads))
	}
}

// More threads than the ring has chunks: the target must go on, and be recorded
// whole.
func TestALosslessTargetMayHaveMoreThreadsThanTheRingHasChunks(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "fixed", "16", "5000")
	r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "--ring", "512K", "-f", "counted_*")...)
	p.Go()
	hung := false
	for start := time.Now(); !hung && !slices.ContainsFunc(p.Stdout(), isCounted); time.Sleep(10 * time.Millisecond) {
		hung = time.Since(start) > 5*time.Second
	}
	s := stop(t, r)
	wantUntouched(t, p.Pid())
	made := p.Finish() // it goes on at the latest now
	want := made["counted_a"] + made["counted_b"] + made["counted_c"] + made["counted_d"]
	if hung {
		knownFault(t, "all threads stand still while the recorder lives: %d of %d calls in five seconds", s.Calls, want)
	} else if s.Calls != want || s.Dropped != 0 {
		t.Errorf("%d calls recorded and %d dropped, the program made %d", s.Calls, s.Dropped, want)
	}
}

func isCounted(line string) bool { return strings.HasPrefix(line, "counted ") }

// knownFault reports what is known not to hold yet: as a failure once somebody
// works on it, with CALLREEL_KNOWN set.
func knownFault(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CALLREEL_KNOWN") != "" {
		t.Errorf("known fault: "+format, args...)
		return
	}
	t.Logf("KNOWN FAULT: "+format, args...)
}
