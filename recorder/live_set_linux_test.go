package recorder_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

var switchedFunctions = []string{1: "sw_outer", 2: "sw_inner", 3: "sw_tail", 4: "sw_end", 5: "sw_deep", 6: "sw_jump", 7: "sw_leave", 8: "sw_signal", 9: "sw_long"}

// switchedTarget is a target that keeps a log of its calls.
type switchedTarget struct {
	loggedTarget
	changes map[string][]switchedAt // by function, in their order
	shut    bool                    // exits may be switched off while calls are open, where what is written can't be read in time
}

// switchedAt is when a function was switched: at some time between the two.
type switchedAt struct {
	asked, answered uint64
	on              bool
}

func startSwitched(t *testing.T) *switchedTarget {
	t.Helper()
	return &switchedTarget{loggedTarget: startLogged(t, "switched"), changes: map[string][]switchedAt{}}
}

// set switches functions, or all on with none.
func (s *switchedTarget) set(t *testing.T, off ...string) recorder.SetAnswer {
	t.Helper()
	asked := ring.Ticks()
	a, err := recorder.AskToSet(context.Background(), s.Pid(), recorder.SetRequest{All: true, Exclude: off})
	answered := ring.Ticks()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range switchedFunctions[1:] {
		s.changes[f] = append(s.changes[f], switchedAt{asked, answered, !slices.Contains(off, f)})
	}
	if a.Off != len(off) || a.On+a.Off < len(switchedFunctions)-1 {
		t.Fatalf("%d of %v off: %+v", len(off), off, a)
	}
	return a
}

// was says whether a function was on all the time, and whether it was off.
func (s *switchedTarget) was(function string, from, to uint64) (on, off bool) {
	is := true
	for _, c := range s.changes[function] {
		if c.asked > to {
			break
		}
		if c.answered >= from && c.on != is {
			return false, false
		}
		is = c.on
	}
	return is, !is
}

// readLog reads the log of the target's calls, by thread, in the order of their beginnings.
func (s *switchedTarget) readLog(t *testing.T) map[int][]loggedCall {
	t.Helper()
	return s.loggedTarget.readLog(t, 4, 1<<20, switchedFunctions)
}

// wantSwitched holds the reel against the log: all calls are there that began while their function was on, none that were made while it
// was off, and each has its exit, but for those that longjmp has left. began is when recording was on. With short set short calls may be
// missing.
func (s *switchedTarget) wantSwitched(t *testing.T, file string, began, over uint64, short bool) {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log := s.readLog(t)
	dump, _ := f.Dump() // what its rings held may have been overwritten before it was read, on a busy machine
	on, off := 0, 0
	for _, thread := range f.Threads() {
		have := map[string][]loggedCall{}
		var p reel.Pairer
		p.OnCall = func(c *reel.Call) {
			fn, _ := f.Function(c.Func)
			if c.Flags&reel.Unfinished != 0 || !strings.HasPrefix(fn.Name, "sw_") || fn.Name == "sw_leave" || fn.Name == "sw_jump" && c.Flags&reel.Implicit != 0 {
				return
			}
			if c.Flags&reel.Implicit != 0 && !s.shut {
				t.Errorf("thread %d: a call of %s from %d has no exit", thread.TID, fn.Name, c.Start)
			}
			have[fn.Name] = append(have[fn.Name], loggedCall{fn.Name, c.Start, c.End})
		}
		unmatched := uint64(0)
		first := uint64(0)
		f.ReadThread(thread.Key, func(events []reel.Event, lost bool) bool {
			for i := range events {
				p.Push(events[i : i+1])
				if p.Unmatched != unmatched {
					unmatched = p.Unmatched
					if fn, _ := f.Function(events[i].ID()); first != 0 && events[i].Time > first+(over-began)/10 && strings.HasPrefix(fn.Name, "sw_") && fn.Name != "sw_long" {
						t.Errorf("thread %d: an exit of %s without an entry", thread.TID, fn.Name)
					}
				}
				if first == 0 {
					first = events[i].Time
				}
			}
			return true
		})
		p.Finish(f.EndOf(&thread))
		byStart := func(a, b loggedCall) int { return int(int64(a.from - b.from)) }
		for name, calls := range have {
			slices.SortFunc(calls, byStart)
			have[name] = calls
		}
		logged := log[thread.TID]
		slices.SortFunc(logged, byStart)
		at := map[string]int{}
		for _, c := range logged {
			h, i := have[c.function], at[c.function]
			for i < len(h) && h[i].from < c.from {
				i++
			}
			at[c.function] = i
			there := short && c.function != "sw_outer" && c.function != "sw_long" || i < len(h) && h[i].to <= c.to
			wasOn, wasOff := s.was(c.function, c.from, c.to)
			if wasOff && runtime.GOARCH == "arm64" { // a core may have fetched the instruction before: up to its next interrupt (docs/platforms.md)
				_, wasOff = s.was(c.function, c.from-min(c.from, f.Header().Clock.TicksPerSecond/50), c.to)
			}
			switch {
			case c.from < began || c.to > over:
			case slices.ContainsFunc(dump.Missing, func(m reel.Missing) bool {
				return (m.Thread == 0 || m.Thread == thread.Key) && m.From <= c.to && m.To >= c.from
			}):
			case wasOn && !there:
				t.Errorf("thread %d: a call of %s from %d to %d isn't there", thread.TID, c.function, c.from, c.to)
			case wasOff && there && !short && !(s.shut && c.to-c.from > f.Header().Clock.TicksPerSecond/1000): // with a budget, what takes longer is looked at
				t.Errorf("thread %d: a call of %s from %d to %d is there", thread.TID, c.function, c.from, c.to)
			}
			on, off = on+count(wasOn), off+count(wasOff)
			if t.Failed() {
				return
			}
		}
	}
	if on == 0 || off == 0 {
		t.Errorf("%d calls of functions that were on, %d of such that were off", on, off)
	}
	t.Logf("%d calls of functions that were on, %d of such that were off", on, off)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestFunctionsAreSwitchedWhileTheyRun(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		flags []string
		times int
	}{
		{nil, 60},
		{[]string{"--lazy"}, 30},
		{[]string{"--lazy", "-m", "*"}, 20}, // more than have inline events
		{[]string{"--eager", "-m", "*"}, 20},
		{[]string{"--lossless", "--ring", "512K"}, 30},
		{[]string{"--min", "1ns"}, 30},
		{[]string{"--depth", "100", "--follow"}, 20},
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			t.Parallel()
			if slices.Contains(c.flags, "--follow") {
				realtest.Need(t, realtest.AMD64) // elsewhere a forked child's code is its own, and callreel says so
			}
			s := startSwitched(t)
			chosen := []string{"-f", "sw_*"}
			if slices.Contains(c.flags, "-m") {
				chosen = nil
			}
			r := realtest.StartRecording(t, slices.Concat(pidFlag(s), c.flags, chosen)...)
			began := ring.Ticks()
			for i := range c.times {
				var off []string
				for _, f := range switchedFunctions[1:] {
					if rand.IntN(2) == 0 {
						off = append(off, f)
					}
				}
				if i%2 == 1 {
					off = nil
				}
				s.set(t, off...)
				rest := time.Duration(rand.IntN(8)) * time.Millisecond
				if i%16 == 8 { // so that exits are off as well
					rest = 450 * time.Millisecond
				}
				time.Sleep(rest)
			}
			over := ring.Ticks()
			sum := stop(t, r)
			wantUntouched(t, s.Pid())
			s.Finish()
			if sum.Dropped != 0 || sum.LostExits != 0 || sum.Torn != 0 {
				t.Errorf("%+v", sum)
			}
			if rep := reportOf(t, r.File); rep.Calls != sum.Calls || rep.Events != sum.Events {
				t.Errorf("%d calls and %d events in the reel, %+v", rep.Calls, rep.Events, sum)
			}
			s.wantSwitched(t, r.File, began, over, slices.Contains(c.flags, "--min"))
		})
	}
}

// A dump has the calls of functions that are off up to then, and no exit alone.
func TestFunctionsAreSwitchedInAnArmedRecording(t *testing.T) {
	needLive(t)
	s := startSwitched(t)
	r := realtest.StartRecording(t, append(pidFlag(s), "-f", "sw_*", "--when", "sw_long #1000000", "--keep", "1m")...)
	began := ring.Ticks()
	for i := range 24 {
		off := []string{"sw_inner", "sw_tail", "sw_deep", "sw_signal"}[i%4:]
		if i%2 == 1 {
			off = nil
		}
		s.set(t, off...)
		rest := time.Duration(rand.IntN(8)) * time.Millisecond
		if i%8 == 4 { // so that some are off for sure, on arm64 too
			rest = 60 * time.Millisecond
		}
		time.Sleep(rest)
	}
	over := ring.Ticks()
	a, err := recorder.AskToSet(context.Background(), s.Pid(), recorder.SetRequest{Functions: []string{"sw_outer"}})
	if err != nil || a.Kept != 1 || a.On != 2 {
		t.Errorf("what is watched for a trigger stays on: %+v, %v", a, err)
	}
	d, err := recorder.AskForDump(context.Background(), s.Pid(), recorder.DumpRequest{Kind: reel.TriggerRequest})
	if err != nil {
		t.Fatal(err)
	}
	stopArmed(t, r)
	wantUntouched(t, s.Pid())
	s.Finish()
	s.wantSwitched(t, d.File, began, over, false)
}

// Functions of a library that comes later go by what was set before.
func TestALibraryThatIsLoadedLaterGoesByWhatWasSet(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, mode := range []string{"--eager", "--lazy"} {
		t.Run(mode, func(t *testing.T) {
			p := loading(t, "late")
			r := realtest.StartRecording(t, append(pidFlag(p), mode, "-m", "l*-*")...)
			set := func(q recorder.SetRequest) recorder.SetAnswer {
				a, err := recorder.AskToSet(context.Background(), p.Pid(), q)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			just := recorder.SetRequest{Functions: []string{"steady_work"}}
			off := set(just).Off
			p.Go()
			p.WaitLine("loaded")
			eventually(t, "probed", func() bool { return set(just).Off > off })
			if n := allRecorded(t, r.File); n != 0 {
				t.Errorf("%d calls recorded of a function that is off", n)
			}
			set(recorder.SetRequest{All: true})
			eventually(t, "recorded", func() bool { return recorded(t, r.File) > 0 })
			p.Go()
			p.WaitLine("unloaded")
			stop(t, r)
			wantUntouched(t, p.Pid())
			p.Finish()
		})
	}
}

// What is off stays off in a process whose recorder is gone, and it runs as before.
func TestFunctionsThatAreOffOutliveTheRecorder(t *testing.T) {
	needLive(t)
	s := startSwitched(t)
	r := realtest.StartRecording(t, append(pidFlag(s), "-f", "sw_*")...)
	s.set(t, "sw_inner", "sw_tail", "sw_deep")
	time.Sleep(400 * time.Millisecond)
	s.set(t, "sw_outer", "sw_tail")
	r.Signal(os.Kill)
	r.Wait()
	realtest.MustCallreel(t, "detach", "-p", strconv.Itoa(s.Pid()))
	wantUntouched(t, s.Pid())
	s.Finish()
}

func TestWhatCantBeSetIsSaid(t *testing.T) {
	needLive(t)
	s := startSwitched(t)
	_, err := recorder.AskToSet(context.Background(), s.Pid(), recorder.SetRequest{All: true})
	if !errors.Is(err, recorder.ErrNoRecorder) {
		t.Errorf("nobody records it: %v", err)
	}
	r := realtest.StartRecording(t, append(pidFlag(s), "-f", "sw_*")...)
	_, err = recorder.AskToSet(context.Background(), s.Pid(), recorder.SetRequest{Exclude: []string{"sw_inn"}})
	var none *recorder.NoMatchError
	if !errors.As(err, &none) || none.Flag != "-x" || !slices.Contains(none.Near, "sw_inner") {
		t.Errorf("a glob that matches nothing: %v", err)
	}
	if a := s.set(t); a.Changed != 0 {
		t.Errorf("%+v", a)
	}
	stop(t, r)
	s.Finish()
}

// Filters and conditions get other values than recording began with; what an armed one didn't begin with is refused.
func TestFiltersGetOtherValues(t *testing.T) {
	needLive(t)
	s := startSwitched(t)
	set := func(q recorder.SetRequest) error {
		_, err := recorder.AskToSet(context.Background(), s.Pid(), q)
		return err
	}
	want := func(err, is error) {
		t.Helper()
		if !errors.Is(err, is) {
			t.Errorf("%v, want %v", err, is)
		}
	}
	r := realtest.StartRecording(t, append(pidFlag(s), "-f", "sw_*", "--min", "10s", "--threads", "nobody")...)
	want(set(recorder.SetRequest{Keep: time.Second}), recorder.ErrNotSettable)
	want(set(recorder.SetRequest{Min: 100 * time.Millisecond}), nil)
	if n := allCalls(t, r.File); n != 0 {
		t.Errorf("%d calls of threads that are off", n)
	}
	want(set(recorder.SetRequest{Threads: []string{"switched*"}}), nil)
	eventually(t, "long calls recorded", func() bool { return allCalls(t, r.File) > 1 })
	stop(t, r)
	least, calls := shortest(t, r.File)
	if least < 100*time.Millisecond || calls["sw_long"] == 0 {
		t.Errorf("a call of %v; %v", least, calls)
	}

	r = realtest.StartRecording(t, append(pidFlag(s), "-f", "sw_*", "--when", "sw_long > 1h")...)
	want(set(recorder.SetRequest{Min: time.Second}), recorder.ErrNotSettable)
	want(set(recorder.SetRequest{When: []string{"sw_deep > 1ms"}}), recorder.ErrNotSettable)
	want(set(recorder.SetRequest{Threads: []string{"*"}}), recorder.ErrNotSettable)
	want(set(recorder.SetRequest{Keep: 100 * time.Millisecond, When: []string{"sw_long > 10ms"}}), nil)
	file := waitDumps(t, r, 1)[0]
	if d := reportOfDump(t, file); d.Trigger.Name != "sw_long" {
		t.Errorf("%+v", d.Trigger)
	}
	stopArmed(t, r)
	wantUntouched(t, s.Pid())
	s.Finish()
}

// A recording that began without them can be given a least duration and names of threads, and both can be lifted again.
func TestFiltersAreAddedAndLifted(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, began := range [][]string{nil, {"--min", "10s", "--threads", "nobody"}} {
		s := startSwitched(t)
		r := realtest.StartRecording(t, append(append(pidFlag(s), "-f", "sw_*"), began...)...)
		set := func(args ...string) {
			realtest.MustCallreel(t, append([]string{"set", "-p", strconv.Itoa(s.Pid())}, args...)...)
		}
		calls := func(name string) int64 {
			return realtest.Decode[report](t, realtest.MustCallreel(t, "report", "--json", r.File).Stdout).Report.Calls(name)
		}
		if began == nil {
			eventually(t, "recorded", func() bool { return calls("sw_inner") > 0 })
		}
		set("--threads", "nobody")
		eventually(t, "off", func() bool {
			n := calls("sw_outer")
			time.Sleep(500 * time.Millisecond)
			return calls("sw_outer") == n
		})
		set("--min", "100ms")
		set("--threads", "*")
		inner, long := calls("sw_inner"), calls("sw_long")
		eventually(t, "long calls recorded", func() bool { return calls("sw_long") > long+1 })
		if n := calls("sw_inner"); n != inner {
			t.Errorf("%v: %d short calls recorded", began, n-inner)
		}
		set("--min", "0")
		eventually(t, "short calls recorded", func() bool { return calls("sw_inner") > inner+1000 })
		stop(t, r)
		wantUntouched(t, s.Pid())
		s.Finish()
	}
}

// allCalls is how many calls are in a reel, which may still be written.
func allCalls(t *testing.T, file string) int64 {
	t.Helper()
	r := realtest.Callreel(t, "report", "--json", file)
	if r.Code != 0 {
		t.Fatalf("report: %s", r.Stderr)
	}
	return realtest.Decode[report](t, r.Stdout).Calls
}
