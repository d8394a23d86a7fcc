package reel

import (
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// goroutineReel has goroutines that wait, are preempted, go from one thread to another and have the runtime work on the thread's own
// stack; its times are in units of 160 ticks.
func goroutineReel(t *testing.T, tier Tier) *File {
	const (
		u = 160
		f = iota
		gopark
		parkM
		schedule
		goschedImpl
		onSystemStack
		asyncPreempt2
	)
	path := filepath.Join(t.TempDir(), "go.reel")
	w, err := Create(path, Header{Goroutines: true, Clock: Clock{TicksPerSecond: 1e9, BaseTick: schedBase}}, Options{})
	realtest.Must(t, err)
	_, err = w.AddFunctions([]Function{{Name: "main.f", Tier: TierExitSite}, {Name: "runtime.gopark", Tier: tier}, {Name: "runtime.park_m", Tier: tier},
		{Name: "runtime.schedule", Tier: tier}, {Name: "runtime.goschedImpl", Tier: tier}, {Name: "runtime.mallocgc.func1", Tier: tier}, {Name: "runtime.asyncPreempt2", Tier: tier}})
	realtest.Must(t, err)
	at := func(n uint64) uint64 { return schedBase + n*u }
	on := func(id uint64, n uint64) Event { return Switch(at(n), id) }
	in := func(n uint64, sp, id uint32) Event { return Entry(at(n), sp, id) }
	out := func(n uint64, sp, id uint32) Event { return Exit(at(n), sp, id) }
	threads := [][]Event{
		{
			on(7, 1), in(1, 500, f), in(20, 400, gopark),
			on(0, 21), in(21, 900, parkM), in(22, 800, schedule),
			on(8, 30), in(30, 500, f), in(60, 400, asyncPreempt2),
			on(0, 60), in(60, 900, goschedImpl), in(61, 800, schedule),
			on(12, 70), in(70, 500, f), on(0, 75), in(75, 900, goschedImpl), on(12, 88), out(88, 500, f), // may have been on in between
			on(10, 90), in(90, 500, f),
			on(11, 92), in(92, 500, f), out(93, 500, f), // without a word the one before is gone
			on(10, 95), out(95, 500, f),
		},
		{
			on(7, 40), out(40, 400, gopark), out(44, 500, f),
			on(9, 50), in(50, 500, f), on(0, 52), in(52, 900, onSystemStack), out(54, 900, onSystemStack), on(9, 56), out(56, 500, f),
			on(8, 80), out(80, 400, asyncPreempt2), out(80, 500, f),
		},
	}
	words := [][]SchedEvent{
		{{Time: at(0), Kind: SchedIn}, {Time: at(10), Kind: SchedBlocked}, {Time: at(12), Kind: SchedIn}, {Time: at(50), Kind: SchedPreempted}, {Time: at(52), Kind: SchedIn}},
		{{Time: at(0), Kind: SchedIn}},
	}
	for i := range threads {
		tw, err := w.Thread(Thread{TID: 100 + i, Process: 100})
		realtest.Must(t, err)
		realtest.Must(t, tw.Append(threads[i]))
		realtest.Must(t, tw.Sched(words[i]))
	}
	w.SchedKnown(at(100))
	return reopen(t, w, path)
}

func TestGoroutinesDoWhatTheirThreadsDoAndWaitInBetween(t *testing.T) {
	const u = 160
	file := goroutineReel(t, TierExitSite)
	s := Summarize(file, SummaryOptions{})
	for _, fn := range s.Functions {
		unknown := fn.Total - fn.TotalStates.Known()
		switch fn.Name {
		case "main.f":
			// Goroutine 7's, 8's, 9's, 10's, 11's and 12's.
			want := StateTimes{Running: (22 + 28 + 6 + 0 + 1 + 5) * u, Ready: 22 * u, Blocked: 21 * u}
			if fn.TotalStates != want || unknown != (5+13)*u {
				t.Errorf("%+v, %d unknown, want %+v", fn.TotalStates, unknown, want)
			}
			if self := (StateTimes{Running: want.Running - u, Ready: 2 * u, Blocked: 2 * u}); fn.SelfStates != self {
				t.Errorf("self %+v, want %+v", fn.SelfStates, self)
			}
		case "runtime.gopark":
			if fn.SelfStates != (StateTimes{Running: u, Blocked: 19 * u}) {
				t.Errorf("%+v", fn)
			}
		case "runtime.mallocgc.func1":
			if fn.SelfStates != (StateTimes{Running: 2 * u}) {
				t.Errorf("%+v", fn)
			}
		}
	}
	for _, g := range s.Goroutines {
		switch g.ID {
		case 7:
			if g.States != (StateTimes{22 * u, 0, 21 * u}) || g.Unknown != 0 {
				t.Errorf("%+v", g)
			}
		case 8:
			if g.States != (StateTimes{28 * u, 22 * u, 0}) || g.Unknown != 0 {
				t.Errorf("%+v", g)
			}
		case 10:
			if g.States != (StateTimes{}) || g.Unknown != 5*u {
				t.Errorf("%+v", g)
			}
		}
	}
	if th := s.Threads[0]; th.States != (StateTimes{91 * u, 2 * u, 2 * u}) {
		t.Errorf("%+v", th)
	}
	if !file.GoroutineStates().Known() {
		t.Error("not known")
	}
}

// Where the runtime isn't recorded a goroutine may leave its thread without a word.
func TestNothingIsKnownOfGoroutinesWithoutTheRuntime(t *testing.T) {
	file := goroutineReel(t, TierNone)
	if file.GoroutineStates().Known() {
		t.Error("known")
	}
	s := Summarize(file, SummaryOptions{})
	for _, fn := range s.Functions {
		if fn.TotalStates.Known() != 0 {
			t.Errorf("%+v", fn)
		}
	}
	if th := s.Threads[0]; th.States.Known() == 0 {
		t.Errorf("%+v", th)
	}
}
