package timeline

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// goexit is the ID of the function by which goroutines end.
const goexit = 80

// goroutineEvents are the events of threads that run goroutines in turns.
func goroutineEvents(seed uint64, threads, goroutines, events int) [][]reel.Event {
	rng := rand.New(rand.NewPCG(seed, 5))
	type goroutine struct {
		id     uint64
		events []reel.Event
		free   uint64 // when it may run again
	}
	var list []*goroutine
	for i := range goroutines {
		p := program{rng: rng, cost: 2}
		g := &goroutine{id: uint64(i + 1), events: p.run(events/goroutines, rng.IntN(4), 1+rng.IntN(6))}
		for k := range g.events {
			g.events[k].SP += uint32(i) << 20
		}
		if i%3 == 0 {
			g.events = append(g.events, reel.Entry(0, 0x7ffe0000+uint32(i)<<20, goexit))
		}
		list = append(list, g)
	}
	out := make([][]reel.Event, threads)
	now := make([]uint64, threads)
	for i := range now {
		p := program{rng: rng, now: 1000, cost: 30}
		out[i] = p.run(20, 2, 2)
		now[i] = p.now + uint64(i)
	}
	for len(list) > 0 {
		t := 0
		for i := range now {
			if now[i] < now[t] {
				t = i
			}
		}
		k := rng.IntN(len(list))
		g := list[k]
		now[t] = max(now[t], g.free) + 1 + uint64(rng.IntN(50))
		out[t] = append(out[t], reel.Switch(now[t], g.id))
		n := min(len(g.events), 1+rng.IntN(120))
		for _, e := range g.events[:n] {
			now[t] += 1 + uint64(rng.IntN(40))
			e.Time = now[t]
			out[t] = append(out[t], e)
		}
		g.free = now[t] + 1
		if g.events = g.events[n:]; len(g.events) == 0 {
			list = append(list[:k], list[k+1:]...)
		}
	}
	return out
}

func newGoroutineReel(t testing.TB, seed uint64, threads [][]reel.Event) *testReel {
	h := reel.Header{Goroutines: true, Clock: reel.Clock{TicksPerSecond: 1e9, BaseTick: 1000}}
	return newReelOf(t, seed, h, threads...)
}

// newGoroutineModel is newModel for a reel of goroutines.
func newGoroutineModel(f *reel.File, lanes []Lane) *model {
	m := &model{clock: newClock(f)}
	type open struct {
		l *modelLane
		p *reel.Pairer

		last uint64
	}
	by := map[laneKey]*open{}
	for _, l := range lanes {
		x := &open{l: &modelLane{thread: l.Thread, goroutine: l.Goroutine}}
		x.p = &reel.Pairer{OnCall: func(c *reel.Call) { x.l.add(*c, m.clock.first) }}
		x.p.SetTops(nil) // goroutines' stacks have no neighbours in theirs, as reel.File.ReadyPairer says
		by[keyOfRun(l.Goroutine, l.Thread)] = x
		m.lanes = append(m.lanes, x.l)
	}
	f.ReadGoroutines(func(g uint64, thread uint32, events []reel.Event, lost bool) bool {
		if lost {
			for _, x := range by {
				x.p.Lost()
			}
		}
		x := by[keyOfRun(g, thread)]
		if x.p.Open() == 0 {
			x.p.Finish(0)
			x.p.SetTime(events[0].Time)
		}
		for i := range events { // no time in a lane is before another
			events[i].Time = max(events[i].Time, x.last)
			x.last = events[i].Time
		}
		x.p.Push(events)
		if f.Ends(events) {
			x.p.Abandon()
		}
		return true
	})
	for _, x := range by {
		x.p.Finish(f.LastTick())
		x.l.calls = x.p.Calls
		x.l.finish()
	}
	return m
}

func TestGoroutinesAnswersAreThoseOfAllCalls(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newGoroutineReel(t, seed, goroutineEvents(seed, 4, 25, 15000))
			for r.write(t, 1000) {
			}
			realtest.Must(t, r.w.Close())
			f, tl := openTest(t, r.name, small())
			if n := len(tl.Lanes()); n != 29 {
				t.Fatalf("%d lanes", n)
			}
			if n := len(tl.live.Load().batches); n < 5 {
				t.Fatalf("only %d batches", n)
			}
			check(t, tl, newGoroutineModel(f, tl.Lanes()), rand.New(rand.NewPCG(seed, 3)))
		})
	}
}

func TestGrowingReelOfGoroutines(t *testing.T) {
	r := newGoroutineReel(t, 1, goroutineEvents(1, 3, 10, 6000))
	r.write(t, 300)
	_, tl := openTest(t, r.name, small())
	rng := rand.New(rand.NewPCG(1, 3))
	known := tl.Lanes()
	for more := true; more; {
		check(t, tl, newGoroutineModel(tl.File(), tl.Lanes()), rng)
		more = r.write(t, 500)
		_, err := tl.Refresh(t.Context())
		realtest.Must(t, err)
		lanes := tl.Lanes()
		for i, l := range known {
			if lanes[i].Goroutine != l.Goroutine || l.Goroutine == 0 && lanes[i].Thread != l.Thread {
				t.Fatalf("lane %d was %+v, and is %+v", i, l, lanes[i])
			}
		}
		known = lanes
	}
	r.closeWithIndex(t)
	if changed, err := tl.Refresh(t.Context()); err != nil || !changed {
		t.Fatal("the reel was closed, and nothing changed", err)
	}
	check(t, tl, newGoroutineModel(tl.File(), tl.Lanes()), rng)
	for i, l := range known {
		if tl.Lanes()[i].Goroutine != l.Goroutine {
			t.Fatalf("lane %d was %+v, and is %+v", i, l, tl.Lanes()[i])
		}
	}
}

// Each of many goroutines may have made most of a batch's calls at some time.
func TestRoomForTheCallsOfGoroutinesIsBounded(t *testing.T) {
	g := goroutineBuilder{}
	var all []*pairing
	for range 100 {
		p := &pairing{calls: make([]call, 10, maxSpare/8)}
		all = append(all, p)
		g.takeBuffer(p)
		if p.calls != nil || g.spareCalls > maxSpare {
			t.Fatalf("room for %d calls is left with a goroutine, for %d kept", cap(p.calls), g.spareCalls)
		}
	}
	kept := 0
	for _, p := range all {
		g.lendBuffer(p)
		kept += cap(p.calls)
		if len(p.calls) > 0 {
			t.Error("calls were left in it")
		}
	}
	if kept != maxSpare || g.spareCalls != 0 {
		t.Errorf("room for %d calls was kept, of %d, and %d are left", kept, maxSpare, g.spareCalls)
	}
}
