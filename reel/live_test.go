package reel

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// liveSum is what a function's calls come to.
type liveSum struct {
	calls, ended, self, max uint64
	p50, p99                uint64
}

// pairedSums are the sums of one thread's events, by the Pairer alone.
func pairedSums(events []Event, end uint64, known uint32) map[uint32]liveSum {
	sums := map[uint32]liveSum{}
	durations := map[uint32]*histogram{}
	id := func(c *Call) uint32 {
		if c.Func > known {
			return 0
		}
		return c.Func
	}
	p := Pairer{}
	p.OnEntry = func(c *Call) {
		f := sums[id(c)]
		f.calls++
		sums[id(c)] = f
	}
	p.OnCall = func(c *Call) {
		f := sums[id(c)]
		f.ended++
		f.self += c.Self()
		f.max = max(f.max, c.Duration())
		if c.Complete() {
			h := durations[id(c)]
			if h == nil {
				h = new(histogram)
				durations[id(c)] = h
			}
			h.add(c.Duration())
		}
		sums[id(c)] = f
	}
	p.Push(events)
	p.Finish(end)
	for id, h := range durations {
		f := sums[id]
		f.p50, f.p99 = min(f.max, h.percentile(50)), min(f.max, h.percentile(99))
		sums[id] = f
	}
	return sums
}

// liveSums are the same by a tally that is asked now and then, in pieces of at most so many events.
func liveSums(events []Event, end uint64, known uint32, piece int, rng *rand.Rand) (map[uint32]liveSum, uint64) {
	t := NewLiveTally(false)
	t.Known(known, 0)
	thread := t.Thread(1)
	sum, now, calls := new(LiveSums), uint64(0), uint64(0)
	take := func(tick uint64) {
		s := t.Take(tick)
		sum.Add(s)
		calls += s.Threads[0].Calls
		t.Reuse(s)
	}
	for len(events) > 0 {
		n := 1 + rng.IntN(min(piece, len(events)))
		thread.Push(events[:n])
		for _, e := range events[:n] {
			now = max(now, e.Time)
		}
		events = events[n:]
		if rng.IntN(3) == 0 {
			take(now)
		}
	}
	thread.End(end)
	take(end)
	return listSums(sum), calls
}

func listSums(s *LiveSums) map[uint32]liveSum {
	got := map[uint32]liveSum{}
	for id, f := range s.Functions {
		one := liveSum{calls: f.Calls, ended: f.Ended, self: f.Self, max: f.Max}
		one.p50, _ = s.Percentile(id, 50)
		one.p99, _ = s.Percentile(id, 99)
		got[id] = one
	}
	return got
}

// wantLive fails the test if the sums taken while events come are not those of all of them.
func wantLive(t *testing.T, events []Event, end uint64, known uint32, piece int, rng *rand.Rand) {
	t.Helper()
	want := pairedSums(events, end, known)
	got, calls := liveSums(events, end, known, piece, rng)
	if !maps.Equal(got, want) {
		for id := range want {
			if got[id] != want[id] {
				t.Errorf("function %d: %+v, want %+v", id, got[id], want[id])
			}
		}
		t.Errorf("%d functions, want %d", len(got), len(want))
	}
	entries := uint64(0)
	for _, e := range events {
		if !e.IsExit() {
			entries++
		}
	}
	if calls != entries {
		t.Errorf("the thread made %d calls, want %d", calls, entries)
	}
}

func TestSumsWhileCallsAreMadeAreThoseOfAllCalls(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for seed := range uint64(6) {
		events := newProgram(seed, 60).run(20_000)
		end := events[len(events)-1].Time + 1000
		t.Run(fmt.Sprint("program ", seed), func(t *testing.T) { wantLive(t, events, end, 60, 1+rng.IntN(3000), rng) })
		// As many as are cut off are open at the end.
		t.Run(fmt.Sprint("cut ", seed), func(t *testing.T) { wantLive(t, events[:10_001], end, 60, 500, rng) })
	}
	for seed := range uint64(6) {
		s := newScheduler(seed)
		s.throws = 20
		own := s.add(base)
		s.enter(own, 3)
		for i := range 30 {
			s.add(uint32(0x10000000 + i*16<<10))
		}
		for range 1000 {
			if seed%2 == 0 {
				s.caught(own, 1)
			}
			s.run(s.stacks[1+s.rng.IntN(30)])
		}
		end := s.finish()
		t.Run(fmt.Sprint("coroutines ", seed), func(t *testing.T) { wantLive(t, s.events, end, 20, 1+rng.IntN(500), rng) })
	}
	for n := range 60 {
		events := randomEvents(rng, 500)
		t.Run(fmt.Sprint("random ", n), func(t *testing.T) { wantLive(t, events, 1<<63, 5, 60, rng) })
	}
}

// The time of a call that goes on counts while it passes, and its duration up to now.
func TestOpenCallsCountWhileTheyGoOn(t *testing.T) {
	tally := NewLiveTally(false)
	tally.Known(3, 0)
	tally.Begin(1000)
	thread := tally.Thread(1)
	thread.Push([]Event{Entry(1100, base, 1), Entry(1200, base-32, 2)})
	for i, want := range []map[uint32]liveSum{
		{1: {calls: 1, self: 100, max: 900}, 2: {calls: 1, self: 800, max: 800}},
		{1: {max: 1900}, 2: {self: 1000, max: 1800}},
		{1: {self: 400, max: 2900}, 2: {ended: 1, self: 500, max: 2300, p50: 2300, p99: 2300}, 3: {calls: 1, self: 100, max: 100}},
	} {
		if i == 2 {
			thread.Push([]Event{Exit(3500, base-32, 2), Entry(3900, base-32, 3)})
		}
		s := tally.Take(uint64(2000 + 1000*i))
		got := listSums(s)
		for id, f := range got {
			f.p50, f.p99 = near(f.p50, 2300), near(f.p99, 2300)
			got[id] = f
		}
		if !maps.Equal(got, want) {
			t.Errorf("stretch %d: %+v, want %+v", i, got, want)
		}
		if at := s.Threads[0]; i == 1 && (at.Depth != 2 || at.Function != 2 || at.Since != 1200) {
			t.Errorf("the thread is at %+v", at)
		}
	}
}

func TestSumsOfHostileThreadsTakeBoundedMemory(t *testing.T) {
	tally := NewLiveTally(false)
	tally.Known(1, 0)
	deep := make([]Event, 1<<16)
	for i := range deep {
		deep[i] = Entry(1, -uint32(i)*16, ^uint32(0)>>1)
	}
	made, open := uint64(0), uint64(0)
	for key := range uint32(40) {
		tally.Thread(key).Push(deep)
		made += uint64(len(deep))
	}
	s := tally.Take(2)
	for id, f := range s.Functions {
		if id != 0 {
			t.Errorf("function %d is not known", id)
		}
		open += f.Open
	}
	if open != maxLiveOpen || open+s.Ignored != made || len(s.functions) > 2 {
		t.Errorf("%d calls are open, %d ignored of %d", open, s.Ignored, made)
	}
	for _, l := range tally.threads {
		l.End(3)
	}
	tally.Take(4)
	if tally.open != 0 || len(tally.threads) != 0 {
		t.Errorf("%d calls open of %d threads when all have ended", tally.open, len(tally.threads))
	}
}

// Goroutines that go from thread to thread come out as a reel of the same events has them, however the threads' events come in.
func TestSumsOfGoroutinesAreThoseOfAReel(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		threads, now := goroutineEvents(rng, 3, 12, 300)
		w, name := create(t, Header{Goroutines: true, Clock: Clock{TicksPerSecond: 1e9, BaseTick: 1}})
		_, err := w.AddFunctions([]Function{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "runtime.goexit1"}})
		realtest.Must(t, err)
		tally := NewLiveTally(true)
		tally.Known(4, 4)
		var lives []*LiveThread
		for i, events := range threads {
			realtest.Must(t, addThread(t, w, Thread{TID: i + 1}).Append(events))
			lives = append(lives, tally.Thread(uint32(i+1)))
		}
		realtest.Must(t, w.Close())
		want := map[uint32]liveSum{}
		for _, f := range Summarize(open(t, name), SummaryOptions{}).Functions {
			want[f.ID] = liveSum{calls: f.Calls, ended: f.Calls, self: f.Self, max: f.Max, p50: f.P50, p99: f.P99}
		}
		sum := new(LiveSums)
		for at := uint64(0); at < now; {
			at += 1 + rng.Uint64N(200)
			for i := range threads { // all of before at, and more
				n := 0
				for n < len(threads[i]) && (threads[i][n].Time < at || rng.IntN(3) > 0) {
					n++
				}
				lives[i].Push(threads[i][:n])
				threads[i] = threads[i][n:]
			}
			tally.Round(at - 1)
			if rng.IntN(4) == 0 {
				sum.Add(tally.Take(min(at-1, now)))
			}
		}
		tally.Round(now)
		tally.routine.finish(now)
		sum.Add(tally.Take(now))
		if got := listSums(sum); !maps.Equal(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if len(tally.routine.lanes) != 0 || tally.open != 0 {
			t.Errorf("%d lanes, %d calls are left", len(tally.routine.lanes), tally.open)
		}
	}
}

// goroutineEvents makes the events of goroutines that call one another's functions, change threads in the middle and end.
func goroutineEvents(rng *rand.Rand, threads, goroutines, steps int) (out [][]Event, now uint64) {
	out = make([][]Event, threads)
	on := make([]uint64, threads) // whose the thread's last events were
	depth := make([]int, goroutines+1)
	ids := make([][]uint32, goroutines+1)
	now = 10
	for range steps {
		th, g := rng.IntN(threads), uint64(1+rng.IntN(goroutines))
		if on[th] != g {
			now++
			out[th] = append(out[th], Switch(now, g))
			on[th] = g
			for i := range on { // it is on one thread at a time, and named again where it comes back to
				if i != th && on[i] == g {
					on[i] = ^uint64(0)
				}
			}
		}
		for range 1 + rng.IntN(6) {
			now += 1 + rng.Uint64N(9)
			sp := uint32(0x100000 - 64*depth[g])
			if depth[g] > 0 && (rng.IntN(2) == 0 || depth[g] > 8) {
				id := ids[g][depth[g]-1]
				depth[g]--
				ids[g] = ids[g][:depth[g]]
				out[th] = append(out[th], Exit(now, sp+64, id))
				continue
			}
			id := uint32(1 + rng.IntN(3))
			out[th] = append(out[th], Entry(now, sp, id))
			ids[g] = append(ids[g], id)
			depth[g]++
		}
		if rng.IntN(40) == 0 {
			now++
			out[th] = append(out[th], Entry(now, uint32(0x100000-64*depth[g]), 4))
			depth[g], ids[g] = 0, nil
			now++
			out[th] = append(out[th], Switch(now, 0))
			on[th] = 0
		}
	}
	return slices.DeleteFunc(out, func(e []Event) bool { return len(e) == 0 }), now
}

// Threads of a Go program that write whatever they like do no harm, and nothing of them is left when they have ended.
func TestSumsOfGoroutinesWithoutSenseEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		tally := NewLiveTally(true)
		tally.Known(5, 3)
		var threads []*LiveThread
		for i := range 3 {
			threads = append(threads, tally.Thread(uint32(i+1)))
		}
		for range 60 {
			events := randomEvents(rng, 1+rng.IntN(50))
			for i := range events {
				if rng.IntN(5) == 0 {
					events[i] = Switch(events[i].Time, uint64(rng.IntN(9)))
				}
			}
			threads[rng.IntN(3)].Push(events)
			threads[rng.IntN(3)].Dropped(1, uint64(rng.IntN(2)))
			if rng.IntN(2) == 0 {
				tally.Round(rng.Uint64() >> rng.IntN(64))
			}
			if rng.IntN(9) == 0 {
				tally.Reuse(tally.Take(rng.Uint64() >> rng.IntN(64)))
			}
		}
		for _, l := range threads {
			l.End(1 << 40)
		}
		tally.routine.finish(1 << 40)
		s := tally.Take(1 << 41)
		if tally.open != 0 || len(tally.threads) != 0 || len(s.Threads) != 3 || !s.Threads[0].Ended {
			t.Fatalf("%d calls are open, %d threads left; %+v", tally.open, len(tally.threads), s.Threads)
		}
		for id, f := range s.Functions {
			if f.Open != 0 {
				t.Errorf("function %d: %d calls are open", id, f.Open)
			}
		}
	}
}

// finish ends the calls of all goroutines, in the order of their IDs.
func (g *liveGoroutines) finish(tick uint64) {
	ids := make([]uint64, 0, len(g.lanes))
	for id := range g.lanes {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, cmp.Compare[uint64])
	for _, id := range ids {
		g.lanes[id].finish(tick)
	}
	clear(g.lanes)
}

// What calls take as a rule is said without the longest, and with the calls within them.
func TestTypicalCallsAndWhatIsWithinThem(t *testing.T) {
	tally := NewLiveTally(false)
	tally.Known(10, 0)
	tally.Begin(0)
	thread := tally.Thread(1)
	var events []Event
	tick := uint64(1000)
	for i := range 100 {
		begin := tick
		events = append(events, Entry(begin, 1000, 1))
		for k := range 3 { // each of which makes one more
			at := begin + 10*uint64(k)
			events = append(events, Entry(at+1, 900, 2), Entry(at+2, 800, 3), Exit(at+3, 800, 3), Exit(at+4, 900, 2))
		}
		took := uint64(100)
		if i >= 90 {
			took = 1_000_000 // it waited
		}
		tick = begin + took
		events = append(events, Exit(tick, 1000, 1))
	}
	for len(events) > 0 { // in parts, so that calls are open between them
		n := min(7, len(events))
		thread.Push(events[:n])
		events = events[n:]
	}
	s := tally.Take(tick)
	for _, w := range []struct {
		id             uint32
		percent        uint64
		ticks, beneath float64
		calls          uint64
	}{{1, 90, 100, 6, 100}, {2, 90, 3, 1, 300}, {3, 90, 1, 0, 300}, {1, 100, 100_090, 6, 100}, {4, 90, 0, 0, 0}, {99, 90, 0, 0, 0}} {
		ticks, beneath, calls := s.Typical(w.id, w.percent)
		if math.Abs(ticks-w.ticks) > 0.01*w.ticks || math.Abs(beneath-w.beneath) > 1e-9 || calls != w.calls {
			t.Errorf("%+v: %v ticks, %v calls within each of %d", w, ticks, beneath, calls)
		}
	}
	both := new(LiveSums)
	both.Add(s)
	both.Add(s)
	if ticks, beneath, calls := both.Typical(1, 90); math.Abs(ticks-100) > 1 || beneath != 6 || calls != 200 {
		t.Errorf("twice that is %v, %v, %d", ticks, beneath, calls)
	}
	s.Clear()
	if ticks, beneath, calls := s.Typical(1, 90); ticks != 0 || beneath != 0 || calls != 0 {
		t.Errorf("of nothing it is %v, %v, %d", ticks, beneath, calls)
	}
}

// Sums that are used again have nothing of what they had, and aren't gone through for functions that were met before and are not called any more.
func TestSumsAreUsedAgainAsIfTheyWereNew(t *testing.T) {
	tally := NewLiveTally(false)
	tally.Known(1000, 0)
	thread := tally.Thread(1)
	at := uint64(0)
	stretch := func(ids ...uint32) *LiveSums {
		for _, id := range ids {
			thread.Push([]Event{Entry(at+1, 500, id), Exit(at+1+uint64(id), 500, id)})
			at += 1 + uint64(id)
		}
		return tally.Take(at)
	}
	for n, ids := range [][]uint32{{1, 2, 3, 900}, {2}, {}, {3, 2, 700, 3}, {1000}} {
		s := stretch(ids...)
		want := map[uint32]uint64{}
		for _, id := range ids {
			want[id]++
		}
		if len(s.there) != len(want) {
			t.Errorf("stretch %d: %d functions are gone through, %d were called", n, len(s.there), len(want))
		}
		for id, f := range s.Functions {
			p99, _ := s.Percentile(id, 99)
			mean, beneath, calls := s.Typical(id, 100)
			if f.Calls != want[id] || f.Ended != want[id] || f.Self != want[id]*uint64(id) || f.Max != uint64(id) || calls != want[id] || beneath != 0 ||
				p99 == 0 || p99 > uint64(id) || mean < 0.99*float64(id) || mean > 1.01*float64(id) {
				t.Errorf("stretch %d: function %d: %+v, p99 %d, mean %g of %d", n, id, *f, p99, mean, calls)
			}
			delete(want, id)
		}
		if len(want) > 0 {
			t.Errorf("stretch %d: %v are missing", n, want)
		}
		tally.Reuse(s)
	}
}
