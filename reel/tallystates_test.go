package reel

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// stateful writes a reel of threads with these events and these words of the scheduler; either may be nil.
func stateful(t testing.TB, h Header, events [][]Event, words [][]SchedEvent, end uint64) *File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stateful.reel")
	w, err := Create(path, h, Options{})
	realtest.Must(t, err)
	_, err = w.AddImage(Image{Path: "/usr/bin/prog"})
	realtest.Must(t, err)
	functions := make([]Function, 40)
	for i := range functions {
		functions[i] = Function{Name: "f" + string(rune('a'+i)), Image: 1}
	}
	_, err = w.AddFunctions(functions)
	realtest.Must(t, err)
	realtest.Must(t, w.Scheduling(Scheduling{Source: "bpf", WakeUps: true, Faults: true}))
	for i := range events {
		tw, err := w.Thread(Thread{TID: 100 + i})
		realtest.Must(t, err)
		realtest.Must(t, tw.Append(events[i]))
		realtest.Must(t, tw.Sched(words[i]))
	}
	w.SchedKnown(end)
	realtest.Must(t, w.ClockPair(end, 2))
	realtest.Must(t, w.Close())
	f, err := Open(path)
	realtest.Must(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// between is what the thread did from one tick to another, found by going through all of its intervals.
func between(states []StateInterval, from, to uint64) (t StateTimes) {
	for _, s := range states {
		if a, b := max(s.From, from), min(s.To, to); a < b {
			t.Add(s.State, b-a)
		}
	}
	return t
}

// madeUpThreads are threads with coroutines, exceptions, calls that are open at the end, and states that are in no step with their events.
func madeUpThreads(rng *rand.Rand, n int) (events [][]Event, words [][]SchedEvent, end uint64) {
	for i := range n {
		s := newScheduler(rng.Uint64())
		s.now, s.throws = schedBase+rng.Uint64N(50_000), rng.IntN(2)*9
		var stacks []*coroutine
		for k := range 1 + rng.IntN(4) {
			stacks = append(stacks, s.add(0x70000000+uint32(k)<<22))
		}
		for range 300 {
			s.run(stacks[rng.IntN(len(stacks))])
		}
		events = append(events, s.events)
		w := []SchedEvent(nil)
		if i%5 != 4 { // else nothing is known of it
			w = schedStream(rng, 20+rng.IntN(2000), schedBase+rng.Uint64N(200_000), rng.IntN(2) == 0)
			for k := range w { // as quick as the events
				w[k].Time = schedBase + (w[k].Time-schedBase)/64
			}
			end = max(end, w[len(w)-1].Time)
		}
		words, end = append(words, w), max(end, s.now)
	}
	return events, words, end + 1000
}

func nanosecondHeader() Header {
	return Header{Clock: Clock{TicksPerSecond: 1e9, BaseTick: schedBase, BaseUnixNS: 1}}
}

func TestEachCallHasWhatItsThreadDidFromItsEntryToItsEnd(t *testing.T) {
	for seed := range uint64(20) {
		events, words, end := madeUpThreads(rand.New(rand.NewPCG(seed, 3)), 5)
		f := stateful(t, nanosecondHeader(), events, words, end)
		for _, th := range f.Threads() {
			states := all(f.States(th.Key))
			var p Pairer
			var last uint64
			var selves, outer StateTimes
			calls := 0
			p.OnCall = func(c *Call) {
				calls++
				if want := between(states, c.Start, c.End); c.States != want {
					t.Fatalf("seed %d, thread %d: %+v, want %+v", seed, th.Key, c, want)
				}
				if c.SelfStates().Known() > c.Self() {
					t.Fatalf("seed %d, thread %d: more than itself: %+v", seed, th.Key, c)
				}
				selves = selves.Plus(c.SelfStates())
			}
			// On the outside: from one event to the next one belongs to the stack of the first.
			open := 0
			f.ReadyPairer(&p, th.Key)
			f.PairStates(&p, th.Key)
			step := func(at uint64) {
				if open > 0 {
					outer = outer.Plus(between(states, last, at))
				}
				last = at
			}
			f.ReadThread(th.Key, func(events []Event, _ bool) bool {
				for i := range events {
					step(events[i].Time)
					p.Push(events[i : i+1])
					open = len(p.stacks[p.cur].calls)
				}
				return true
			})
			// At the end of the recording all is ended where it is.
			step(f.EndOf(&th))
			p.Finish(f.EndOf(&th))
			if calls == 0 || selves != outer {
				t.Errorf("seed %d, thread %d: %d calls: all functions' own %+v, inside of calls %+v", seed, th.Key, calls, selves, outer)
			}
		}
	}
}

func TestFunctionsAndTimeOutsideOfThemAddUpToTheThreads(t *testing.T) {
	for seed := range uint64(10) {
		events, words, end := madeUpThreads(rand.New(rand.NewPCG(seed, 4)), 5)
		f := stateful(t, nanosecondHeader(), events, words, end)
		for _, workers := range []int{1, 3} {
			s := Summarize(f, SummaryOptions{Workers: workers})
			if !s.HasStates {
				t.Fatal("no states")
			}
			var self, open, outer StateTimes
			var unknown, all uint64
			for i := range s.Functions {
				fn := &s.Functions[i]
				self, open = self.Plus(fn.SelfStates), open.Plus(fn.UnfinishedSelfStates)
				unknown += fn.Self - fn.SelfStates.Known()
				all += fn.Self
				if fn.TotalStates.Known() > fn.Total || fn.SelfStates.Known() > fn.Self || fn.SelfStates.Minus(fn.TotalStates) != (StateTimes{}) {
					t.Errorf("seed %d: %+v", seed, fn)
				}
				if fn.EndedSelfStates().Plus(fn.UnfinishedSelfStates) != fn.SelfStates {
					t.Errorf("seed %d: parts of %+v", seed, fn)
				}
			}
			if self.Known()+unknown != all || open == (StateTimes{}) {
				t.Errorf("seed %d: %+v and %d unknown of %d; %+v unfinished", seed, self, unknown, all, open)
			}
			for i, th := range s.Threads {
				states := allStates(f, th.Key)
				if want := between(states, 0, ^uint64(0)); th.States != want || th.HasStates != (len(states) > 0) {
					t.Errorf("seed %d, thread %d: %+v, want %+v", seed, i, th.States, want)
				}
				var minor uint64
				f.Faults(th.Key, 0, ^uint64(0), func(Fault) bool { minor++; return true })
				if th.MinorFaults != minor || th.MajorFaults != 0 {
					t.Errorf("seed %d, thread %d: %d page faults, want %d", seed, i, th.MinorFaults, minor)
				}
				last, inside := uint64(0), false
				var p Pairer
				f.ReadyPairer(&p, th.Key)
				outside := func(at uint64) {
					if !inside {
						outer = outer.Plus(between(states, last, at))
					}
					last = at
				}
				f.ReadThread(th.Key, func(events []Event, _ bool) bool {
					for k := range events {
						outside(events[k].Time)
						p.Push(events[k : k+1])
						inside = len(p.stacks[p.cur].calls) > 0
					}
					return true
				})
				outside(f.EndOf(&th.Thread))
				inside = false
				outside(^uint64(0))
			}
			var threads StateTimes
			for _, th := range s.Threads {
				threads = threads.Plus(th.States)
			}
			if self.Plus(outer) != threads {
				t.Errorf("seed %d: functions %+v, outside of them %+v: together not %+v", seed, self, outer, threads)
			}
		}
	}
}

func allStates(f *File, thread uint32) []StateInterval { return all(f.States(thread)) }

// A Pairer that goes on from another one's state knows nothing of the time before.
func TestStatesCountFromWhereAPairerGoesOn(t *testing.T) {
	events, words, end := madeUpThreads(rand.New(rand.NewPCG(1, 5)), 1)
	f := stateful(t, nanosecondHeader(), events, words, end)
	states := all(f.States(1))
	for _, at := range []int{1, 17, len(events[0]) / 2, len(events[0]) - 3} {
		var before, p Pairer
		f.ReadyPairer(&before, 1)
		before.Push(events[0][:at])
		st := before.State(nil)
		f.ReadyPairer(&p, 1)
		f.PairStates(&p, 1)
		p.SetTops(before.Tops())
		p.SetState(st)
		p.OnCall = func(c *Call) {
			if want := between(states, max(c.Start, st.Now), c.End); c.States != want {
				t.Errorf("from event %d on: %+v, want %+v", at, c, want)
			}
			if c.SelfStates().Known() > c.Self() {
				t.Errorf("from event %d on: more than itself: %+v", at, c)
			}
		}
		p.Push(events[0][at:])
		p.Finish(end)
	}
}

func TestOneSummaryIsThatOfItsThreads(t *testing.T) {
	// A thread that makes no calls, one of which nothing is known, and one with both.
	events := [][]Event{nil, {Entry(schedBase+1000, base, 1), Exit(schedBase+3000, base, 1)}, {Entry(schedBase+1000, base, 2), Exit(schedBase+3000, base, 2)}}
	words := [][]SchedEvent{
		{{Time: schedBase, Kind: SchedIn}, {Time: schedBase + 4000, Kind: SchedBlocked}},
		nil,
		{{Time: schedBase + 2000, Kind: SchedIn}, {Time: schedBase + 2500, Kind: SchedPreempted}, {Time: schedBase + 2800, Kind: SchedIn}, {Time: schedBase + 2900, Kind: SchedMajorFault}},
	}
	s := Summarize(stateful(t, nanosecondHeader(), events, words, schedBase+10_000), SummaryOptions{})
	quantum := func(n uint64) uint64 { return n >> schedQuantum(1e9) << schedQuantum(1e9) }
	if th := s.Threads[0]; th.Calls != 0 || th.States != (StateTimes{Running: quantum(4000), Blocked: 10_000 - quantum(4000)}) || th.Unknown != 0 {
		t.Errorf("the thread without calls: %+v", th)
	}
	if th := s.Threads[1]; th.HasStates || th.Unknown != 9000 {
		t.Errorf("the thread without states: %+v", th)
	}
	if th := s.Threads[2]; th.Unknown != 1000-(2000-quantum(2000)) || th.MajorFaults != 1 || th.MinorFaults != 0 {
		t.Errorf("the thread with both: %+v", th)
	}
	for _, fn := range s.Functions {
		known := fn.SelfStates.Known()
		switch fn.ID {
		case 1:
			if known != 0 || fn.Self != 2000 {
				t.Errorf("of which nothing is known: %+v", fn)
			}
		case 2:
			if want := 3000 - quantum(2000); fn.Self != 2000 || known != want || fn.SelfStates.Ready != quantum(2800)-quantum(2500) || fn.TotalStates != fn.SelfStates {
				t.Errorf("%+v, want %d known", fn, want)
			}
		}
	}
}
