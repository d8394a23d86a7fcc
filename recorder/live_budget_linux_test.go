package recorder_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// Of a function that a budget leaves out all calls are in the reel but those of the times that the reel says.
func TestABudgetLeavesOutWhatTheReelSays(t *testing.T) {
	needLive(t)
	for _, flags := range [][]string{nil, {"--lazy"}, {"--keep-function", "sw_inner"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			t.Parallel()
			s := startSwitched(t)
			s.shut = true
			r := realtest.StartRecording(t, slices.Concat(pidFlag(s), flags, []string{"--budget", "0.1%", "--count-off", "-f", "sw_*"})...)
			began := ring.Ticks()
			time.Sleep(4 * time.Second) // it is chosen after a tenth of a second, and sites go half a second later
			over := ring.Ticks()
			sum := stop(t, r)
			wantUntouched(t, s.Pid())
			s.Finish()
			offs := s.offsOf(t, r.File, flags)
			if sum.Budget.FunctionsOff == 0 || sum.Budget.SitesRemoved == 0 || offs == 0 {
				t.Fatalf("%+v; functions were off %d times", sum.Budget, offs)
			}
			s.wantSwitched(t, r.File, began, over, false)
		})
	}
}

// offsOf has it that functions were off when the reel says so, and returns how often they were.
func (s *switchedTarget) offsOf(t *testing.T, file string, flags []string) (times int) {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	switching := f.Header().Clock.TicksPerSecond // within a second, on a busy machine
	for _, o := range f.Offs() {
		fn, _ := f.Function(o.Function)
		if slices.Contains(flags, fn.Name) {
			t.Errorf("%s was off", fn.Name)
		}
		s.changes[fn.Name] = append(s.changes[fn.Name], switchedAt{o.From, o.From + switching, false}, switchedAt{o.To, o.To + switching, true})
		times++
	}
	if b, ok := f.Budget(); !ok || b.Wanted != 0.001 || b.FunctionsOff == 0 || b.CallsShare >= 1 {
		t.Errorf("%+v, %v", b, ok)
	}
	return times
}

// So it is in a dump.
func TestABudgetLeavesOutWhatADumpSays(t *testing.T) {
	needLive(t)
	s := startSwitched(t)
	s.shut = true
	r := realtest.StartRecording(t, append(pidFlag(s), "--budget", "0.1%", "-f", "sw_*", "--when", "sw_long #1000000", "--keep", "1m")...)
	began := ring.Ticks()
	time.Sleep(4 * time.Second)
	over := ring.Ticks()
	d, err := recorder.AskForDump(context.Background(), s.Pid(), recorder.DumpRequest{Kind: reel.TriggerRequest})
	if err != nil {
		t.Fatal(err)
	}
	stopArmed(t, r)
	wantUntouched(t, s.Pid())
	s.Finish()
	if s.offsOf(t, d.File, []string{"sw_long"}) == 0 { // which has a trigger
		t.Error("no function was off")
	}
	s.wantSwitched(t, d.File, began, over, false)
}

// Where more is called than can be read, all is switched on for a moment again and again as elsewhere, and the budget is kept then, too.
func TestABudgetIsKeptWhereMoreIsCalledThanCanBeRead(t *testing.T) {
	t.Parallel()
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "8")
	for d := 14 * time.Second; ; d *= 2 { // the second time comes after 10 s, later on a busy machine
		r := realtest.StartRecording(t, "-p", fmt.Sprint(p.Pid()), "-f", "counted_*", "--budget", "10%", "--count-off")
		time.Sleep(d)
		s := stop(t, r)
		wantUntouched(t, p.Pid())
		if s.Budget.Samples > 1 && s.Budget.FunctionsOff > 0 {
			break
		}
		if d > time.Minute {
			t.Fatalf("%+v", s.Budget)
		}
	}
	p.Finish()
}

// A budget takes all sites out of a library that calls nothing else than what is called all the time. It hasn't gone for that. It may go meanwhile,
// and come back.
func TestALibraryOfWhichNothingIsLeftByABudgetIsStillThere(t *testing.T) {
	t.Parallel()
	needLive(t)
	p := loading(t, "late")
	p.Go()
	p.WaitLine("loaded")
	r := realtest.StartRecording(t, append(pidFlag(p), "--budget", "0.1%", "-f", "library_value", "-f", "seven_times")...)
	time.Sleep(3 * time.Second)
	for range 2 {
		p.Go()
		p.WaitLine("unloaded")
		time.Sleep(100 * time.Millisecond)
		p.Go()
		p.WaitLine("loaded")
		time.Sleep(time.Second)
	}
	s := stop(t, r)
	wantUntouched(t, p.Pid())
	if p.Finish()["calls"] == 0 {
		t.Error("it has called nothing")
	}
	if s.Calls == 0 || s.Ended || s.Left != "" {
		t.Errorf("%+v", s)
	}
	t.Logf("%+v, %+v", s.Budget, s.Libraries)
	if s.Budget.FunctionsOff < 2 || s.Budget.SitesRemoved == 0 {
		t.Errorf("%+v", s.Budget)
	}
	if s.Libraries.Unloaded > 2 || s.Libraries.Stops > 4 {
		t.Errorf("it went twice, and %d times was it thought to have gone: %+v", s.Libraries.Unloaded, s.Libraries)
	}
}
