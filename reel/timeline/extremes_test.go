package timeline

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

func TestGapsAreWhereEventsAreMissing(t *testing.T) {
	p := program{rng: rand.New(rand.NewPCG(1, 1)), now: 2000, cost: 20}
	events := p.run(9000, 2, 4)[:9000]
	name := filepath.Join(t.TempDir(), "gaps.reel")
	w, err := reel.Create(name, reel.Header{Clock: reel.Clock{TicksPerSecond: 1e9, BaseTick: 1000}}, reel.Options{})
	realtest.Must(t, err)
	tw, err := w.Thread(reel.Thread{TID: 1})
	realtest.Must(t, err)
	at := func(i int) uint64 { return events[i].Time - 1000 }
	var want []Gap
	for i := 0; i < 9000; i += 1000 {
		realtest.Must(t, tw.Append(events[i:i+1000]))
		switch i {
		case 1000: // in the middle of a chunk
			realtest.Must(t, tw.Dropped(5, 5, events[i+999].Time+3))
			want = append(want, Gap{at(1999), at(2000), 10})
		case 2000:
			realtest.Must(t, tw.Flush())
		case 3000:
			realtest.Must(t, tw.Flush())
			realtest.Must(t, tw.Dropped(1, 0, events[i+999].Time+3)) // between two
			want = append(want, Gap{at(3999), at(4000), 1})
		case 5000, 6000:
			realtest.Must(t, tw.Flush())
		}
	}
	realtest.Must(t, tw.Dropped(7, 0, events[len(events)-1].Time+500))
	realtest.Must(t, w.ClockPair(events[8999].Time+1000, 0))
	realtest.Must(t, w.Close())
	data, err := os.ReadFile(name)
	realtest.Must(t, err)
	f, err := reel.Parse("gaps", data)
	realtest.Must(t, err)
	chunks := f.Chunks(1)
	bad := chunks[len(chunks)-2] // events 6000 to 6999
	if bad.Events != 1000 {
		t.Fatalf("a chunk of %d events", bad.Events)
	}
	data[bad.Offset+100] ^= 1
	want = append(want, Gap{at(5999), at(7000), 1000}, Gap{at(8999), events[8999].Time - 1000 + 500, 7})

	f, err = reel.Parse("gaps", data)
	realtest.Must(t, err)
	tl, err := Open(t.Context(), f, small())
	realtest.Must(t, err)
	v, err := tl.View(t.Context(), Query{To: tl.Duration() + 1, Width: 1 << 20, Lanes: []LaneRows{{0, 0, 1}}})
	realtest.Must(t, err)
	if len(v.Gaps) != 1 || len(v.Gaps[0].Gaps) != len(want) {
		t.Fatalf("gaps %+v, want %+v", v.Gaps, want)
	}
	for i, g := range v.Gaps[0].Gaps {
		if g != want[i] {
			t.Errorf("gap %d: %+v, want %+v", i, g, want[i])
		}
	}
	o, err := tl.Overview(t.Context(), 1<<14)
	realtest.Must(t, err)
	sum := uint64(0)
	for _, g := range o.Gaps {
		sum += g.Events
	}
	if sum != 1018 {
		t.Errorf("%d events are missing in the overview, want 1018", sum)
	}
	check(t, tl, newModel(f), rand.New(rand.NewPCG(1, 3)))
}

func TestDamageThatTheIndexDoesNotKnowIsAGap(t *testing.T) {
	r := newTestReel(t, 1, 1e9, reel.ClockFull, someThreads(1, 4000)[:1]...)
	r.closeWithIndex(t)
	data, err := os.ReadFile(r.name)
	realtest.Must(t, err)
	f, err := reel.Parse("damaged", data)
	realtest.Must(t, err)
	bad := f.Chunks(1)[3]
	data[bad.Offset+60] ^= 1
	tl, err := Open(t.Context(), f, small())
	realtest.Must(t, err)
	if !tl.Indexed() {
		t.Fatal("the index was not used")
	}
	from := tl.clockOf().toNS(tl.clockOf().rel(bad.First))
	v, err := tl.View(t.Context(), Query{From: from - 10, To: from + 500, Width: 5000, Lanes: []LaneRows{{0, 0, 50}}})
	realtest.Must(t, err)
	missing := uint64(0)
	for _, g := range v.Gaps {
		for _, g := range g.Gaps {
			missing += g.Events
		}
	}
	if missing < uint64(bad.Events) {
		t.Errorf("%d events are missing, want at least %d", missing, bad.Events)
	}
	queries(t, tl)
}

func (t *Timeline) clockOf() *clock { return &t.live.Load().clock }

func TestDeepStacks(t *testing.T) {
	const deep = 150_000
	var events []reel.Event
	now := uint64(1000)
	for range 2 {
		for d := range uint32(deep) {
			now++
			events = append(events, reel.Entry(now, 0x80000000-d*16, 1+d%50))
		}
		for d := uint32(deep); d > 0; d-- {
			now++
			events = append(events, reel.Exit(now, 0x80000000-(d-1)*16, 1+(d-1)%50))
		}
	}
	r := newTestReel(t, 1, 1e9, reel.ClockFull)
	tw, err := r.w.Thread(reel.Thread{TID: 1})
	realtest.Must(t, err)
	realtest.Must(t, tw.Append(events))
	realtest.Must(t, Append(t.Context(), r.w, r.name, Options{}))
	realtest.Must(t, r.w.Close())
	_, tl := openTest(t, r.name, Options{})
	if l := tl.Lanes()[0]; !tl.Indexed() || l.Rows != deep || l.Calls != 2*deep {
		t.Fatalf("%+v", l)
	}
	// The innermost call of the second descent.
	at := uint64(3*deep) - 1 + 1
	c, ok, err := tl.CallAt(t.Context(), 0, deep-1, at)
	realtest.Must(t, err)
	if !ok || c.Duration != 1 || c.Depth != deep-1 || len(c.Callers) != maxCallers || c.Callers[maxCallers-1].Depth != deep-2 {
		t.Fatalf("%v: duration %d, depth %d, %d callers", ok, c.Duration, c.Depth, len(c.Callers))
	}
	v, err := tl.View(t.Context(), Query{From: at - 20, To: at + 20, Width: 1000, Lanes: []LaneRows{{0, deep - 10, 100}}})
	realtest.Must(t, err)
	if len(v.Rows) != 10 || v.Rows[9].Bars[0].Duration != 1 || v.Rows[0].Bars[0].Duration != 19 {
		t.Errorf("%+v", v.Rows)
	}
	n := 0
	realtest.Must(t, tl.Replay(t.Context(), 0, at, at+1, func(*reel.Call) bool { n++; return true }))
	if n != deep {
		t.Errorf("%d calls are open, want %d", n, deep)
	}
}

func TestManyThreads(t *testing.T) {
	const threads = 5000
	r := newTestReel(t, 1, 1e9, reel.ClockFull)
	for i := range threads {
		tw, err := r.w.Thread(reel.Thread{TID: 100 + i, Name: "worker"})
		realtest.Must(t, err)
		now := uint64(1000 + 100*i)
		realtest.Must(t, tw.Append([]reel.Event{reel.Entry(now, 0x8000, 1), reel.Entry(now+10, 0x7000, 2), reel.Exit(now+30, 0x7000, 2)}))
		realtest.Must(t, tw.Flush())
	}
	realtest.Must(t, r.w.Flush())
	f, err := reel.Open(r.name)
	realtest.Must(t, err)
	defer f.Close()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tl, err := Open(t.Context(), f, Options{})
	realtest.Must(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := (after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)) / threads; each > 2000 {
		t.Errorf("a thread takes %d bytes", each)
	}
	if n := len(tl.Lanes()); n != threads {
		t.Fatalf("%d lanes", n)
	}
	found, ok, err := tl.Next(t.Context(), func(fn uint32) bool { return fn == 2 }, Position{At: 100*(threads-3) + 50}, false)
	realtest.Must(t, err)
	if !ok || found.Lane != threads-2 || found.Duration != 20 || len(found.Callers) != 1 || found.Callers[0].Flags != reel.Unfinished {
		t.Errorf("%v %+v", ok, found)
	}
	realtest.Must(t, r.w.Close())
}

func TestReelWithoutAClockIsInOrder(t *testing.T) {
	threads := someThreads(1, 3000)
	for _, events := range threads {
		for i := range events {
			events[i].Time = 0
		}
	}
	r := newTestReel(t, 1, 1e9, reel.ClockNone, threads...)
	r.closeWithIndex(t)
	_, tl := openTest(t, r.name, small())
	if n := uint64(len(threads[0])); !tl.Indexed() || tl.Duration() != n {
		t.Errorf("duration %d, want %d", tl.Duration(), n)
	}
	queries(t, tl)
	for i, l := range tl.Lanes() {
		if l.Rows == 0 {
			continue
		}
		v, err := tl.View(t.Context(), Query{To: tl.Duration(), Width: int(tl.Duration()), Lanes: []LaneRows{{uint32(i), 0, l.Rows}}})
		realtest.Must(t, err)
		calls := uint64(0)
		for _, row := range v.Rows {
			for _, b := range row.Bars {
				if b.Calls != 1 || b.Duration == 0 {
					t.Fatalf("%+v", b)
				}
				calls++
			}
		}
		if calls != l.Calls {
			t.Errorf("lane %d: %d calls, want %d", i, calls, l.Calls)
		}
	}
}

func TestDamageAnywhereIsSurvived(t *testing.T) {
	r := newTestReel(t, 2, 1e9, reel.ClockFull, someThreads(2, 1500)...)
	r.closeWithIndex(t)
	whole, err := os.ReadFile(r.name)
	realtest.Must(t, err)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		bad := bytes.Clone(whole)
		for range 1 + rng.IntN(4) {
			bad[rng.IntN(len(bad))] ^= byte(1 + rng.IntN(255))
		}
		if rng.IntN(3) == 0 {
			bad = bad[:rng.IntN(len(bad))]
		}
		f, err := reel.Parse("bad", bad)
		if err != nil {
			continue
		}
		tl, err := Open(t.Context(), f, small())
		realtest.Must(t, err)
		queries(t, tl)
	}
}

func TestQueriesGoOnWhileTheReelGrows(t *testing.T) {
	r := newTestReel(t, 1, 1e9, reel.ClockFull, someThreads(1, 3000)...)
	r.write(t, 300)
	_, tl := openTest(t, r.name, small())
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					queries(t, tl)
				}
			}
		})
	}
	for more := true; more; {
		more = r.write(t, 400)
		if _, err := tl.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
		runtime.GC() // closes the files that are no longer used
	}
	close(done)
	wg.Wait()
	realtest.Must(t, r.w.Close())
}

func TestAnotherRecordingInPlaceOfTheReel(t *testing.T) {
	r := newTestReel(t, 1, 1e9, reel.ClockFull, someThreads(1, 6000)...)
	r.write(t, 3000)
	_, tl := openTest(t, r.name, small())
	other := newTestReel(t, 2, 1e9, reel.ClockFull, someThreads(2, 500)...)
	other.write(t, 100)
	realtest.Must(t, os.Rename(other.name, r.name))
	if changed, err := tl.Refresh(t.Context()); err != nil || !changed {
		t.Fatal(changed, err)
	}
	check(t, tl, newModel(tl.File()), rand.New(rand.NewPCG(1, 1)))
	realtest.Must(t, other.w.Close())
	realtest.Must(t, r.w.Close())
}
