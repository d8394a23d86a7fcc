package recorder_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// armedSummary is what record --when says.
type armedSummary struct {
	summary
	Triggers struct {
		Fired      int `json:"fired"`
		Dumped     int `json:"dumped"`
		Suppressed int `json:"suppressed"`
	} `json:"triggers"`
	Dumps []string `json:"dumps"`
}

// dumpReport is what report --json says of a dump.
type dumpReport struct {
	report
	Trigger struct {
		Kind       string `json:"kind"`
		Detail     string `json:"detail"`
		Name       string `json:"name"`
		TID        int    `json:"tid"`
		DurationNS int64  `json:"duration_ns"`
		Open       bool   `json:"open"`
	} `json:"trigger"`
	Missing []struct {
		TID    int   `json:"tid"`
		FromNS int64 `json:"from_ns"`
		ToNS   int64 `json:"to_ns"`
	} `json:"missing"`
}

func reportOfDump(t *testing.T, file string) dumpReport {
	t.Helper()
	said := realtest.MustCallreel(t, "report", "--json", file).Stdout
	r := realtest.Decode[dumpReport](t, said)
	r.said, r.ends = said, realtest.Decode[unfinished](t, said)
	return r
}

// armedTarget is a target that keeps a log of its calls.
type armedTarget struct {
	loggedTarget
	asked int
}

func startArmed(t *testing.T) *armedTarget {
	t.Helper()
	return &armedTarget{loggedTarget: startLogged(t, "armed")}
}

// do gives a command and waits until it is done.
func (a *armedTarget) do(format string, args ...any) {
	a.Say(fmt.Sprintf(format, args...))
	a.asked++
	a.WaitLine(fmt.Sprintf("done %d.", a.asked))
}

// arm begins to record it into memory.
func (a *armedTarget) arm(t *testing.T, flags ...string) *realtest.Recording {
	t.Helper()
	return realtest.StartRecording(t, slices.Concat(pidFlag(a), []string{"-m", "armed*", "-f", "work_*", "-f", "request", "-f", "endless"}, flags)...)
}

// waitDumps waits until there are n dumps.
func waitDumps(t *testing.T, r *realtest.Recording, n int) []string {
	t.Helper()
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		files, err := filepath.Glob(filepath.Join(r.File, "slow-*.reel"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) >= n {
			return files
		}
		if time.Since(began) > time.Minute || !r.Alive() {
			if r.Alive() { // where its goroutines are says what it waits for
				r.Signal(syscall.SIGQUIT)
				r.Wait()
			}
			t.Fatalf("%d dumps, want %d\n%s", len(files), n, r.Stderr())
		}
	}
}

// stopArmed ends a recording as Ctrl-C does.
func stopArmed(t *testing.T, r *realtest.Recording) armedSummary {
	t.Helper()
	r.Stop()
	s := realtest.Decode[armedSummary](t, strings.Join(r.Stdout(), "\n"))
	if !s.TextVerified {
		t.Errorf("text not verified: %+v", s)
	}
	return s
}

var armedFunctions = []string{1: "work_a", 2: "work_b", 3: "work_c", 4: "request"}

// readLog reads the log of the target's calls, by thread, in the order of their returns.
func (a *armedTarget) readLog(t *testing.T) map[int][]loggedCall {
	t.Helper()
	const room = 1 << 24
	all := a.loggedTarget.readLog(t, 5, room, armedFunctions)
	for tid, calls := range all {
		if len(calls) >= room {
			t.Fatalf("the log of thread %d is full", tid)
		}
	}
	return all
}

// dumped is a dump with each thread's calls that have returned, in that order.
type dumped struct {
	reel.Dump
	calls map[int][]loggedCall
	keys  map[int]uint32
}

func readDump(t *testing.T, file string) dumped {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	about, ok := f.Dump()
	if !ok {
		t.Fatalf("%s is no dump", file)
	}
	d := dumped{about, map[int][]loggedCall{}, map[int]uint32{}}
	for _, th := range f.Threads() {
		d.keys[th.TID] = th.Key
		var open []reel.Event
		f.ReadThread(th.Key, func(events []reel.Event, _ bool) bool {
			for _, e := range events {
				for n := len(open); n > 0 && (open[n-1].SP < e.SP || open[n-1].SP == e.SP && !e.IsExit()); n-- {
					open = open[:n-1]
				}
				if !e.IsExit() {
					open = append(open, e)
				} else if n := len(open); n > 0 && open[n-1].SP == e.SP && open[n-1].ID() == e.ID() {
					fn, _ := f.Function(e.ID())
					d.calls[th.TID] = append(d.calls[th.TID], loggedCall{fn.Name, open[n-1].Time, e.Time})
					open = open[:n-1]
				}
			}
			return true
		})
	}
	return d
}

// says says whether the dump claims to have all of a thread's calls of a time.
func (d *dumped) says(tid int, from, to uint64) bool {
	if from < d.From || to > d.To {
		return false
	}
	return !slices.ContainsFunc(d.Missing, func(m reel.Missing) bool {
		return (m.Thread == 0 || m.Thread == d.keys[tid]) && from <= m.To && to >= m.From
	})
}

// wantWhole holds a dump against the target's log: every call that the dump claims to have must be there, and no other. It returns how
// many there are.
func wantWhole(t *testing.T, file string, log map[int][]loggedCall) (calls int) {
	t.Helper()
	d := readDump(t, file)
	for tid, logged := range log {
		have := d.calls[tid]
		i := 0
		for _, c := range logged {
			if !d.says(tid, c.from, c.to) {
				continue
			}
			for i < len(have) && have[i].to <= c.from && have[i].from < c.from { // the counter goes in steps
				i++
			}
			if i == len(have) || have[i].function != c.function || have[i].from < c.from || have[i].to > c.to {
				for k := max(0, i-2); k < min(len(have), i+3); k++ {
					t.Logf("have %s %d %d (to %d, missing %+v)", have[k].function, int64(have[k].from-d.From), int64(have[k].to-d.From), d.To-d.From, d.Missing)
				}
				t.Fatalf("%s, thread %d: a call of %s from %d to %d of the window isn't there (%d of %d looked at)", filepath.Base(file), tid,
					c.function, c.from-d.From, c.to-d.From, i, len(have))
			}
			i++
			calls++
		}
		// The other way round: all that returned behind the first logged call was logged.
		if n := len(logged); n > 0 {
			made := 0
			for _, h := range have {
				if h.function != "endless" && h.from > logged[0].from && h.to < logged[n-1].to && d.says(tid, h.from, h.to) {
					made++
				}
			}
			seen := 0
			for _, c := range logged {
				if h := c; h.from > logged[0].from && d.says(tid, h.from, h.to) {
					seen++
				}
			}
			const atEdges = 16 // calls that one of the two has just outside
			if made > seen+atEdges {
				t.Fatalf("%s, thread %d: %d calls, where the log has %d", filepath.Base(file), tid, made, seen)
			}
		}
	}
	return calls
}

// slowRequests counts the calls of request in the log that took longer than over by a fifth.
func slowRequests(t *testing.T, log map[int][]loggedCall, file string, over time.Duration) (n int) {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ticks := uint64(1.2 * over.Seconds() * float64(f.Header().Clock.TicksPerSecond))
	for _, calls := range log {
		for _, c := range calls {
			if c.function == "request" && c.to-c.from > ticks {
				n++
			}
		}
	}
	return n
}

// Each slow call is dumped, with what all threads did around it, no other is, and every dump is whole by the target's own log.
func TestDumpsAreWholeByTheTargetsOwnLog(t *testing.T) {
	needLive(t)
	a := startArmed(t)
	r := a.arm(t, "--when", "request > 20ms", "--keep", "50ms", "--ring", "8M")
	a.do("200 0")
	for n := range 3 {
		a.do("1 %d", 30+n)
		waitDumps(t, r, n+1)
	}
	a.do("200 1")
	a.do("both 40")
	r.Signal(syscall.SIGUSR2)
	waitDumps(t, r, 5)
	asked := strings.TrimSpace(realtest.MustCallreel(t, append([]string{"dump", "--last", "20ms"}, pidFlag(a)...)...).Stdout)
	s := stopArmed(t, r)
	wantUntouched(t, a.Pid())
	a.Finish()
	if len(s.Dumps) != s.Triggers.Dumped+2 || !slices.Contains(s.Dumps, asked) {
		t.Errorf("dumps %q, of which %q was asked for", s.Dumps, asked)
	}
	log := a.readLog(t)
	slow := slowRequests(t, log, s.Dumps[0], 20*time.Millisecond)
	// Five were slow on purpose. On a busy machine others may be, and of these the log has more than the stub, whose call begins later, or less.
	const made = 5
	if n := s.Triggers.Fired; n < made || n > slow+2 || slow < made {
		t.Errorf("%d triggers fired, %d calls were slow", n, slow)
	}
	if s.Triggers.Dumped+s.Triggers.Suppressed != s.Triggers.Fired || s.Triggers.Dumped < 4 {
		t.Errorf("triggers %+v", s.Triggers)
	}
	total, whole := 0, 0
	for i, file := range s.Dumps {
		n := wantWhole(t, file, log)
		rep := reportOfDump(t, file)
		if len(rep.Missing) == 0 {
			whole++
		}
		t.Logf("%s: %s %s, %d calls as logged, %d stretches missing", filepath.Base(file), rep.Trigger.Kind, rep.Trigger.Name, n, len(rep.Missing))
		total += n
		if rep.Trigger.Kind == "request" {
			continue
		}
		if want := int64(20 * time.Millisecond); rep.Trigger.Name != "request" || rep.Trigger.Kind != "call" || rep.Trigger.DurationNS < want || rep.Trigger.Open {
			t.Errorf("%s was made for %+v", file, rep.Trigger)
		}
		if i < 3 && rep.Trigger.TID != a.Pid() {
			t.Errorf("%s was made for thread %d, not %d", file, rep.Trigger.TID, a.Pid())
		}
	}
	if total < 1000 {
		t.Errorf("only %d calls in all dumps", total)
	}
}

// A call that doesn't return is dumped while it runs, and once; what had begun before its time is over is seen from outside.
func TestACallThatDoesNotReturnIsDumped(t *testing.T) {
	needLive(t)
	a := startArmed(t)
	r := a.arm(t, "--when", "endless > 100ms", "--keep", "20ms")
	a.do("loop")
	file := waitDumps(t, r, 1)[0]
	rep := reportOfDump(t, file)
	if rep.Trigger.Name != "endless" || !rep.Trigger.Open || rep.Trigger.DurationNS < int64(100*time.Millisecond) {
		t.Errorf("it was made for %+v", rep.Trigger)
	}
	if rep.Report.Calls("work_c") == 0 {
		t.Error("nothing of what it calls is in the dump")
	}
	a.do("end")
	s := stopArmed(t, r)
	a.Finish()
	if s.Triggers.Fired != 1 || s.Triggers.Dumped != 1 || len(s.Dumps) != 1 {
		t.Errorf("triggers %+v, dumps %q", s.Triggers, s.Dumps)
	}
}

// Far more triggers than dumps may be made: all are counted, and the process doesn't wait.
func TestAStormOfTriggersIsCounted(t *testing.T) {
	needLive(t)
	a := startArmed(t)
	r := a.arm(t, "--when", "request == 0", "--when", "request #5", "--max", "3", "--keep", "10ms")
	a.do("100000 0")
	s := stopArmed(t, r)
	a.Finish()
	if s.Triggers.Fired != 100000 || s.Triggers.Dumped > 3 || s.Triggers.Dumped == 0 || s.Triggers.Dumped+s.Triggers.Suppressed != 100000 {
		t.Errorf("triggers %+v", s.Triggers)
	}
	if len(s.Dumps) != s.Triggers.Dumped {
		t.Errorf("dumps %q", s.Dumps)
	}
}

func TestResultsAndNumbersAreTriggers(t *testing.T) {
	needLive(t)
	a := startArmed(t)
	r := a.arm(t, "--when", "request < 0", "--when", "request #7", "--keep", "10ms")
	a.do("6 0")
	a.do("3 0") // the 7th among them
	rep := reportOfDump(t, waitDumps(t, r, 1)[0])
	a.do("1 1")
	other := reportOfDump(t, waitDumps(t, r, 2)[1])
	s := stopArmed(t, r)
	a.Finish()
	if s.Triggers.Fired != 2 || rep.Trigger.Name != "request" || other.Trigger.Name != "request" || other.Trigger.Detail != "returned -1" {
		t.Errorf("triggers %+v: %+v, %+v", s.Triggers, rep.Trigger, other.Trigger)
	}
}

// The rings outlive the process: what is dumped when a signal has ended it is what was there before.
func TestTheLastMomentsOfAKilledProcessAreDumped(t *testing.T) {
	needLive(t)
	a := startArmed(t)
	r := a.arm(t, "--when", "request > 1h", "--keep", "30ms", "--ring", "8M")
	a.do("100 0")
	time.Sleep(50 * time.Millisecond)
	a.Signal(syscall.SIGSEGV)
	a.Wait()
	r.Wait()
	s := realtest.Decode[armedSummary](t, strings.Join(r.Stdout(), "\n"))
	if len(s.Dumps) != 1 || !s.Ended {
		t.Fatalf("%+v\n%s", s, r.Stderr())
	}
	rep := reportOfDump(t, s.Dumps[0])
	if rep.Trigger.Kind != "end" {
		t.Errorf("it was made for %+v", rep.Trigger)
	}
	log := a.readLog(t)
	if n := wantWhole(t, s.Dumps[0], log); n < 100 {
		t.Errorf("only %d calls", n)
	}
	d := readDump(t, s.Dumps[0])
	for tid, calls := range log {
		have := d.calls[tid]
		if n := len(calls); n > 0 && calls[n-1].from > d.From && (len(have) == 0 || have[len(have)-1].to < calls[n-1].from) {
			t.Errorf("thread %d: its last call isn't in the dump", tid)
		}
	}
}

// With --min the rings hold what is long enough only, and so for long; a dump has every such call, by the target's log, and no other.
func TestDumpsWithoutShortCalls(t *testing.T) {
	needLive(t)
	const min = 100 * time.Microsecond
	a := startArmed(t)
	r := a.arm(t, "--when", "request > 20ms", "--min", min.String(), "--keep", "10s", "--ring", "1M")
	time.Sleep(300 * time.Millisecond) // more calls than the rings would hold
	a.do("20 1")
	a.do("1 40")
	waitDumps(t, r, 1)
	s := stopArmed(t, r)
	a.Finish()
	file := s.Dumps[len(s.Dumps)-1] // on a busy machine one of the others may have taken as long
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	ticks := uint64(min.Seconds() * float64(f.Header().Clock.TicksPerSecond))
	f.Close()
	d := readDump(t, file)
	if len(d.Missing) > 0 {
		t.Errorf("missing: %+v", d.Missing)
	}
	long := 0
	for tid, calls := range a.readLog(t) {
		have := d.calls[tid]
		for _, h := range have {
			if h.to-h.from < ticks {
				t.Errorf("thread %d: a call of %s took %d ticks, less than %d", tid, h.function, h.to-h.from, ticks)
			}
		}
		for _, c := range calls {
			if c.to-c.from < ticks+ticks/2 || !d.says(tid, c.from, c.to) || c.function != "request" {
				continue
			}
			long++
			if !slices.ContainsFunc(have, func(h loggedCall) bool { return h.function == c.function && h.from >= c.from && h.to <= c.to }) {
				t.Errorf("thread %d: a call of %s isn't there", tid, c.function)
			}
		}
	}
	if long < 20 { // the dump may have been made before the target's log of the last
		t.Errorf("only %d calls were long", long)
	}
}

// A command may have ended before the recorder has looked: what has fired is dumped, and its last moments are.
func TestACommandThatEndsAtOnceIsDumped(t *testing.T) {
	needLive(t)
	folder := filepath.Join(t.TempDir(), "dumps")
	sum := filepath.Join(t.TempDir(), "summary")
	const calls = 1000
	realtest.MustCallreel(t, "record", "-m", "count*", "-f", "leaf", "--when", "leaf #500", "-o", folder, "--summary", sum, "--",
		realtest.Build(t, "count"), fmt.Sprint(calls), "0")
	text, err := os.ReadFile(sum)
	if err != nil {
		t.Fatal(err)
	}
	s := realtest.Decode[armedSummary](t, string(text))
	if s.Triggers.Fired != 1 || s.Triggers.Dumped != 1 || len(s.Dumps) != 2 {
		t.Fatalf("triggers %+v, dumps %q", s.Triggers, s.Dumps)
	}
	first, last := reportOfDump(t, s.Dumps[0]), reportOfDump(t, s.Dumps[1])
	if first.Trigger.Kind != "call" || first.Trigger.Name != "leaf" || first.Report.Calls("leaf") < 500 {
		t.Errorf("%+v, %d calls of leaf", first.Trigger, first.Report.Calls("leaf"))
	}
	if last.Trigger.Kind != "end" || last.Report.Calls("leaf") != calls || len(last.Missing) > 0 {
		t.Errorf("%+v, %d calls of leaf, missing %+v", last.Trigger, last.Report.Calls("leaf"), last.Missing)
	}
}
