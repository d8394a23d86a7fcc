package export

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/callreel/callreel/reel"
)

// goroutineWeights has goroutines that wait, are preempted and go from one thread to another; its times are in units of 160 ticks.
func goroutineWeights(t *testing.T) *reel.File {
	t.Helper()
	const (
		f = iota + 1
		gopark
		parkM
		schedule
		goschedImpl
		preempt
	)
	at := func(n uint64) uint64 { return 1040 + 160*n }
	on := func(id uint64, n uint64) reel.Event { return reel.Switch(at(n), id) }
	in := func(n uint64, sp, id uint32) reel.Event { return reel.Entry(at(n), sp, id) }
	out := func(n uint64, sp, id uint32) reel.Event { return reel.Exit(at(n), sp, id) }
	return recordAs(t, reel.Header{Goroutines: true}, nil, func(w *reel.Writer) {
		var functions []reel.Function
		for _, name := range []string{"main.f", "runtime.gopark", "runtime.park_m", "runtime.schedule", "runtime.goschedImpl", "runtime.asyncPreempt2"} {
			functions = append(functions, reel.Function{Name: name, Image: 1, Tier: reel.TierExitSite})
		}
		if _, err := w.AddFunctions(functions); err != nil {
			t.Fatal(err)
		}
		a := appendTo(t, w, reel.Thread{TID: 100, Name: "a"},
			on(7, 1), in(1, 500, f), in(20, 400, gopark), on(0, 21), in(21, 900, parkM), in(22, 800, schedule),
			on(8, 30), in(30, 500, f), in(60, 400, preempt), on(0, 60), in(60, 900, goschedImpl), in(61, 800, schedule))
		b := appendTo(t, w, reel.Thread{TID: 101, Name: "b"},
			on(7, 40), out(40, 400, gopark), out(44, 500, f), on(8, 80), out(80, 400, preempt), out(84, 500, f))
		err := errors.Join(
			a.Sched([]reel.SchedEvent{{Time: at(0), Kind: reel.SchedIn}, {Time: at(10), Kind: reel.SchedBlocked}, {Time: at(12), Kind: reel.SchedIn},
				{Time: at(50), Kind: reel.SchedPreempted}, {Time: at(52), Kind: reel.SchedIn}}),
			b.Sched([]reel.SchedEvent{{Time: at(0), Kind: reel.SchedIn}}))
		if err != nil {
			t.Fatal(err)
		}
		w.SchedKnown(at(100))
	})
}

func TestGoroutinesAreWeighedByWhatTheyDid(t *testing.T) {
	f := goroutineWeights(t)
	want := map[string]reel.StateTimes{}
	for _, fn := range reel.Summarize(f, reel.SummaryOptions{}).Functions {
		want[fn.Name] = fn.SelfStates
	}
	if s := want["runtime.gopark"]; s.Blocked != 19*160 {
		t.Fatalf("%+v", want)
	}
	p := parsePProf(t, exportTo(t, f, "pb.gz", Options{}))
	got := map[string]reel.StateTimes{}
	for _, s := range p.Sample {
		name := s.Location[0].Line[0].Function.Name
		got[name] = got[name].Plus(reel.StateTimes{Running: uint64(s.Value[2]), Ready: uint64(s.Value[3]), Blocked: uint64(s.Value[4])})
	}
	for name, times := range want {
		if got[name] != times {
			t.Errorf("pprof: %s: %+v, want %+v", name, got[name], times)
		}
	}
	blocked := newSeen()
	for _, p := range speedscopeImport(t, exportTo(t, f, "speedscope", Options{Weight: WeightBlocked}))[0].Profiles {
		if !strings.HasSuffix(strings.Split(p.Name, ", time")[1], " blocked") && !strings.Contains(p.Name, "open at the end") {
			t.Errorf("a profile %q", p.Name)
		}
		for _, c := range p.Calls {
			blocked.call(c.depth, c.name, c.duration)
		}
		blocked.close(0)
	}
	for name, times := range want {
		if math.Abs(blocked.self[name]-float64(times.Blocked)) > 1 {
			t.Errorf("speedscope: %s was blocked for %v ns, want %d", name, blocked.self[name], times.Blocked)
		}
	}
}

// What a report says of functions is what parts of stacks add up to.
func TestPartsOfStacksTimesAreThoseOfTheReport(t *testing.T) {
	f := weightReel(t)
	got := map[string]reel.StateTimes{}
	for _, s := range parsePProf(t, exportTo(t, f, "pb.gz", Options{})).Sample {
		name := s.Location[0].Line[0].Function.Name
		got[name] = got[name].Plus(reel.StateTimes{Running: uint64(s.Value[2]), Ready: uint64(s.Value[3]), Blocked: uint64(s.Value[4])})
	}
	for _, fn := range reel.Summarize(f, reel.SummaryOptions{}).Functions {
		if got[fn.Name] != fn.SelfStates {
			t.Errorf("%s: %+v, in the report %+v", fn.Name, got[fn.Name], fn.SelfStates)
		}
	}
}
