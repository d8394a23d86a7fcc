package ring

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callreel/callreel/reel"
)

func TestEventsComeOutAsTheyWentIn(t *testing.T) {
	m := newMemory(t, 16)
	d, all := collect(m)
	p := &producer{m, 77}
	p.register("worker")
	made := 0
	for _, burst := range []int{0, 1, 5, ChunkEvents - 6, 1, 1, 3 * ChunkEvents, 12} {
		for range burst {
			if !p.event(reel.Entry(uint64(made), uint32(made*3), uint32(made+1))) {
				t.Fatal("the pool is empty")
			}
			made++
		}
		if n := mustRound(t, d); n != burst {
			t.Errorf("%d events drained, want %d", n, burst)
		}
	}
	if err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	c := (*all)[0]
	if c.tid != 77 || c.name != "worker" || len(c.events) != made {
		t.Fatalf("thread %d, %q: %d events, want %d", c.tid, c.name, len(c.events), made)
	}
	for i, e := range c.events {
		if e != reel.Entry(uint64(i), uint32(i*3), uint32(i+1)) {
			t.Fatalf("event %d is %+v", i, e)
		}
	}
	if sum := d.Totals(); sum.Events != uint64(made) || sum.Entries != uint64(made) || sum.Torn != 0 || sum.Threads != 1 {
		t.Errorf("totals %+v", sum)
	}
	wantFree(t, m, 16)
}

// What is written past the recording's end is neither handed on nor counted, nor is what its thread writes behind that.
func TestWhatIsWrittenPastTheEndIsLeftOut(t *testing.T) {
	m := newMemory(t, 8)
	d, all := collect(m)
	p := &producer{m, 5}
	p.register("past")
	events := []reel.Event{reel.Entry(10, 100, 1), reel.Entry(20, 90, 2), reel.Entry(31, 120, 3), reel.Exit(0, 120, 3)}
	p.event(events[0])
	if n := mustRound(t, d); n != 1 {
		t.Fatalf("%d events drained", n)
	}
	for _, e := range events[1:] {
		p.event(e)
	}
	d.EndsAt = 30
	if err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	if c := (*all)[0]; !slices.Equal(c.events, events[:2]) {
		t.Errorf("%+v", c.events)
	}
	if sum := d.Totals(); sum.Events != 2 || sum.Entries != 2 || sum.Torn != 0 || sum.Dropped != 0 {
		t.Errorf("totals %+v", sum)
	}
	wantFree(t, m, 8)
}

func TestAThreadIDIsUsedAgain(t *testing.T) {
	m := newMemory(t, 8)
	d, all := collect(m)
	for life := range 300 {
		p := &producer{m, 5}
		p.register(fmt.Sprint("life ", life))
		for k := range life + 1 {
			p.event(reel.Exit(1, uint32(k), 1))
		}
		if life%2 == 0 {
			mustRound(t, d)
		} else if err := d.meet(); err != nil {
			t.Fatal(err)
		}
		if err := d.End(5); err != nil {
			t.Fatal(err)
		}
	}
	for life, c := range *all {
		if c.name != fmt.Sprint("life ", life) || len(c.events) != life+1 {
			t.Fatalf("life %d is %q with %d events", life, c.name, len(c.events))
		}
	}
	if n := inPool(t, m); n != 8 || len(*all) != 300 {
		t.Errorf("%d of 8 chunks are free, %d threads", n, len(*all))
	}
}

func TestTheRegistryGoesRound(t *testing.T) {
	m := newMemory(t, 8)
	d, all := collect(m)
	const lives = 3*RegistrySize + 10
	for n := range lives {
		p := &producer{m, 1 + n%1000}
		p.register("x")
		p.drop()
		if n%1000 == 999 {
			if err := d.Finish(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	// Of so many that have dropped calls, and written nothing, most are one.
	if n := d.Totals().Dropped; n != lives || len(*all) > maxUnheard+2*lives/1000 {
		t.Errorf("%d calls dropped, want %d; %d threads met", n, lives, len(*all))
	}
	// More at once than the registry holds: some are lost, yet later ones are met.
	for n := range 2 * RegistrySize {
		(&producer{m, 1 + n}).register("y")
	}
	mustRound(t, d)
	last := &producer{m, MaxTID - 1}
	last.register("last")
	last.event(reel.Entry(1, 1, 1))
	for range RegistrySize / maxRegistrations {
		mustRound(t, d)
	}
	if c := (*all)[len(*all)-1]; c.tid != MaxTID-1 || c.name != "last" {
		t.Errorf("the last thread met is %d, %q", c.tid, c.name)
	}
}

func TestAnEventThatIsNotWrittenYetIsWaitedFor(t *testing.T) {
	m := newMemory(t, 8)
	d, all := collect(m)
	p := &producer{m, 9}
	p.register("x")
	p.event(reel.Entry(1, 1, 1))
	late, err := p.claim()
	if err != nil {
		t.Fatal(err)
	}
	p.event(reel.Entry(3, 3, 3)) // a signal handler's
	if n := mustRound(t, d); n != 1 {
		t.Errorf("%d events drained, want 1", n)
	}
	put(late, reel.Entry(2, 2, 2))
	if n := mustRound(t, d); n != 2 {
		t.Errorf("%d events drained, want 2", n)
	}
	for i, e := range (*all)[0].events {
		if e.ID() != uint32(i+1) {
			t.Errorf("event %d is %+v", i, e)
		}
	}
}

func TestAnEventIsNoLaterThanWhatWasClaimedBehindIt(t *testing.T) {
	m := newMemory(t, 8)
	d, all := collect(m)
	p := &producer{m, 9}
	p.register("x")
	for _, at := range []uint64{10, 70, 0, 30, 40, 35, 80, 80} {
		p.event(reel.Entry(at, 1, 1))
	}
	mustRound(t, d)
	var got []uint64
	for _, e := range (*all)[0].events {
		got = append(got, e.Time)
	}
	if want := []uint64{10, 30, 0, 30, 35, 35, 80, 80}; !slices.Equal(got, want) {
		t.Errorf("times %v, want %v", got, want)
	}
}

func TestAnEventThatIsNeverWrittenIsPassedOver(t *testing.T) {
	for _, c := range []struct {
		name   string
		behind int // events behind the hole
		moved  bool
	}{
		{"in the chunk that is being written", 3, false},
		{"in one that has been left", ChunkEvents + 3, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMemory(t, 8)
			d, all := collect(m)
			p := &producer{m, 9}
			p.register("x")
			p.event(reel.Entry(1, 1, 1))
			late, err := p.claim()
			if err != nil {
				t.Fatal(err)
			}
			for range c.behind {
				p.event(reel.Entry(2, 2, 2))
			}
			mustRound(t, d)
			if n := len((*all)[0].events); n != 1 {
				t.Fatalf("%d events before its patience is over", n)
			}
			time.Sleep(holePatience + 10*time.Millisecond)
			mustRound(t, d)
			if n := len((*all)[0].events); n != 1+c.behind {
				t.Errorf("%d events, want %d", n, 1+c.behind)
			}
			if n := d.Totals().Torn; n != 1 {
				t.Errorf("%d events torn", n)
			}
			if n := inPool(t, m); c.moved && n != 6 || !c.moved && n != 7 {
				t.Errorf("%d of 8 chunks are free: one with a hole must not be", n)
			}
			// It comes after all: it is recorded then, and the chunk can be used again.
			put(late, reel.Entry(9, 9, 9))
			mustRound(t, d)
			for range 2 * ChunkEvents {
				p.event(reel.Entry(2, 2, 2))
			}
			mustRound(t, d)
			wantFree(t, m, 7)
			came := 0
			for _, e := range (*all)[0].events {
				if e.ID() == 9 {
					came++
				}
			}
			if n := d.Totals().Torn; came != 1 || n != 0 {
				t.Errorf("the late event was recorded %d times and %d are torn", came, n)
			}
		})
	}
}

// With a budget there is a hole in most rounds, and to ask the kernel each time costs more than the round.
func TestOnlyOfHolesThatLastItIsAskedWhetherTheirThreadRuns(t *testing.T) {
	m := newMemory(t, 8)
	d, all := collect(m)
	asked, runs := 0, time.Duration(0)
	d.Ran = func(int) (time.Duration, bool) {
		asked++
		return runs, true
	}
	p := &producer{m, 9}
	p.register("x")
	late, err := p.claim()
	if err != nil {
		t.Fatal(err)
	}
	p.event(reel.Entry(2, 2, 2))
	seen := time.Now()
	mustRound(t, d)
	mustRound(t, d)
	if took := time.Since(seen); asked > 0 && took < holeLasts {
		t.Errorf("asked within %v", took)
	}
	time.Sleep(holePatience + 10*time.Millisecond)
	mustRound(t, d)
	mustRound(t, d)
	if n := d.Totals().Torn; asked == 0 || n != 0 {
		t.Errorf("of a thread that hasn't run it was asked %d times, and %d events are torn", asked, n)
	}
	runs = holePatience
	mustRound(t, d)
	if n := d.Totals().Torn; n != 1 || len((*all)[0].events) != 1 {
		t.Errorf("it has run for long: %d events are torn, %d came", n, len((*all)[0].events))
	}
	put(late, reel.Entry(1, 1, 1))
	mustRound(t, d)
	if n := d.Totals().Torn; n != 0 {
		t.Errorf("it came after all: %d events are torn", n)
	}
}

func TestSeveralHolesOfAThreadThatDies(t *testing.T) {
	for _, wait := range []bool{false, true} {
		m := newMemory(t, 8)
		d, all := collect(m)
		p := &producer{m, 9}
		p.register("x")
		var late []*reel.Event
		for i := range 2*ChunkEvents + 100 {
			if i%1000 == 7 || i%1000 == 8 || i%1000 == 200 {
				at, err := p.claim()
				if err != nil {
					t.Fatal(err)
				}
				late = append(late, at)
				continue
			}
			p.event(reel.Entry(2, 2, 2))
		}
		if wait { // holes are noted before the death
			for range 20 {
				mustRound(t, d)
				time.Sleep(holePatience / 5)
			}
			put(late[0], reel.Entry(3, 3, 3)) // behind the drainer's back
		}
		if err := d.meet(); err != nil {
			t.Fatal(err)
		}
		if err := d.End(9); err != nil {
			t.Fatal(err)
		}
		torn := len(late)
		if wait {
			torn-- // one came late, but came
		}
		if n := len((*all)[0].events); n != 2*ChunkEvents+100-torn {
			t.Errorf("%d events, want %d", n, 2*ChunkEvents+100-torn)
		}
		if n := d.Totals().Torn; n != uint64(torn) {
			t.Errorf("%d events torn, want %d", n, torn)
		}
		wantFree(t, m, 8)
	}
}

func TestDropsAreHandedOnOnce(t *testing.T) {
	m := newMemory(t, MinChunks)
	d, all := collect(m)
	p := &producer{m, 3}
	p.register("x")
	const made = 100000
	for range made {
		p.event(reel.Entry(1, 1, 1))
	}
	mustRound(t, d)
	mustRound(t, d)
	c := (*all)[0]
	if sum := d.Totals(); c.dropped == 0 || c.dropped+uint64(len(c.events)) != made || sum.Dropped != c.dropped {
		t.Errorf("%d recorded, %d dropped, totals %+v", len(c.events), c.dropped, sum)
	}
}

func TestASinkThatFailsLosesNothingYet(t *testing.T) {
	m := newMemory(t, MinChunks)
	d, all := collect(m)
	p := &producer{m, 3}
	p.register("x")
	p.event(reel.Entry(1, 1, 1))
	mustRound(t, d)
	p.event(reel.Entry(2, 2, 2))
	full := errors.New("disk full")
	(*all)[0].fail = full
	if _, err := d.Round(); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
	(*all)[0].fail = nil
	if n := mustRound(t, d); n != 1 {
		t.Errorf("%d events", n)
	}
}

// Several producers, threads that end and begin, and the drainer at once.
func TestManyProducersLoseNothing(t *testing.T) {
	t.Run("chunks", func(t *testing.T) { manyProducers(t, newMemory(t, 64)) })
	t.Run("small chunks", func(t *testing.T) { manyProducers(t, dividedMemory(t, 64)) })
	t.Run("few", func(t *testing.T) { manyProducers(t, dividedMemory(t, MinChunks)) })
}

func manyProducers(t *testing.T, m *Memory) {
	const threads, lives, calls = 4, 5, 100000
	d, all := collect(m)
	ended := make(chan int, threads)
	next := make([]chan bool, threads)
	var wg sync.WaitGroup
	var made [threads]uint64
	for k := range threads {
		next[k] = make(chan bool, 1)
		wg.Go(func() {
			for life := range lives {
				p := &producer{m, 100 + k}
				p.register(fmt.Sprint("thread ", k, " life ", life))
				for i := range uint32(calls) {
					p.event(reel.Entry(uint64(i)+1, i, i+1))
					made[k]++
				}
				ended <- 100 + k
				<-next[k]
			}
		})
	}
	for left := threads * lives; left > 0; {
		mustRound(t, d)
		select {
		case tid := <-ended:
			mustRound(t, d)
			if err := d.End(tid); err != nil {
				t.Fatal(err)
			}
			next[tid-100] <- true
			left--
		default:
		}
	}
	wg.Wait()
	if err := d.Finish(); err != nil {
		t.Fatal(err)
	}
	total, dropped := uint64(0), uint64(0)
	for _, c := range *all {
		total += uint64(len(c.events))
		dropped += c.dropped
		last := uint32(0)
		for _, e := range c.events {
			if e.ID() <= last || e.SP != e.ID()-1 || e.Time != uint64(e.ID()) {
				t.Fatalf("%s: %+v behind ID %d", c.name, e, last)
			}
			last = e.ID()
		}
	}
	want := uint64(0)
	for _, n := range made {
		want += n
	}
	if sum := d.Totals(); total+dropped != want || sum.Events != total || sum.Torn != 0 {
		t.Errorf("%d events and %d dropped of %d made; totals %+v", total, dropped, want, sum)
	}
	wantFree(t, m, m.chunks)
}

// Memory has room for many threads that make few calls, and all of it comes back.
func TestThreadsThatCallLittleTakeLittle(t *testing.T) {
	const chunks, threads = 64, 600
	m := dividedMemory(t, chunks)
	d, all := collect(m)
	for i := range threads {
		p := &producer{m, 1 + i}
		p.register("x")
		for k := range uint32(20) {
			p.event(reel.Entry(1, k, 1))
		}
	}
	mustRound(t, d)
	if sum := d.Totals(); sum.Dropped != 0 || len(*all) != threads || sum.AtOnce != threads {
		t.Errorf("%d parts, totals %+v", len(*all), sum)
	}
	for i := range threads {
		if err := d.End(1 + i); err != nil {
			t.Fatal(err)
		}
	}
	wantFree(t, m, m.chunks)
}

// What Enough says is never less than there was, and takes what was dropped, and all threads, into account.
func TestEnough(t *testing.T) {
	const had = 64 << 20
	for _, c := range []struct {
		totals Totals
		want   uint64
	}{
		{Totals{Dropped: 1}, 128 << 20},
		{Totals{Dropped: 9_232_000}, 512 << 20},
		{Totals{Dropped: 1, AtOnce: 100_000}, 1 << 30},
		{Totals{Dropped: 1<<64 - 1}, mostEnough},
	} {
		if got := Enough(had, c.totals); got != c.want {
			t.Errorf("%+v: %d, want %d", c.totals, got, c.want)
		}
	}
}

// What is mapped in the target ahead is what its threads take first, of small chunks and of others.
func TestTheFirstChunksAreAmongThoseMappedAhead(t *testing.T) {
	const most = 8 << 20
	for name, m := range map[string]*Memory{"divided": dividedMemory(t, 1024), "whole": newMemory(t, 1024), "small": dividedMemory(t, MinChunks)} {
		first, total := m.FirstTaken(most), uint64(0)
		for _, r := range first {
			if r.From >= r.To {
				t.Errorf("%s: %#x to %#x", name, r.From, r.To)
			}
			total += r.To - r.From
		}
		taken := func(pool uint64, n int) {
			i := uint32(atomic.LoadUint64(m.u64(pool)))
			for range n {
				if i == 0 {
					return
				}
				at := m.chunk(i - 1)
				if !slices.ContainsFunc(first, func(r Range) bool { return r.From <= at && at < r.To }) {
					t.Fatalf("%s: chunk %d isn't", name, i)
				}
				i = atomic.LoadUint32(m.u32(NextOff + 4*uint64(i-1)))
			}
		}
		taken(HdrSmallPool, 10*SmallFirst)
		taken(HdrPool, 6<<20>>ChunkShift)
		if total > most || name != "small" && total < most {
			t.Errorf("%s: %d bytes of at most %d", name, total, most)
		}
	}
}
