package amd64

import (
	"math"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
)

func predicateDriver(t *testing.T, s stubSetup) (*driver, *ring.Predicates, *ring.Snapshotter) {
	t.Helper()
	s.over = true
	if s.chunks == 0 {
		s.chunks = 64
	}
	d := startDriver(t, s)
	w, err := d.mem.PredicatesAt(ring.Size(s.chunks))
	if err != nil {
		t.Fatal(err)
	}
	return d, w, ring.NewSnapshotter(d.mem.Memory)
}

// The Nth call, and no other, freezes the rings, once; what comes then is counted.
func TestTheNthCallFires(t *testing.T) {
	d, w, k := predicateDriver(t, stubSetup{predicates: 2, ids: 1})
	w.Arm(true)
	w.Set(0, ring.Predicate{Kind: ring.PredicateNumber, Low: 1000, High: 1000})
	w.Set(1, ring.Predicate{Kind: ring.PredicateNumber, Low: 1500, High: 1502})
	d.do("calls 900")
	if w.Fired() != 0 || k.Frozen() {
		t.Fatalf("fired %d times before", w.Fired())
	}
	d.do("calls 200")
	f, ok := w.Firing(1)
	if w.Fired() != 1 || !ok || !k.Frozen() {
		t.Fatalf("fired %d times, %+v", w.Fired(), f)
	}
	if f.Predicate != 0 || f.TID != d.cmd.Process.Pid || f.Word>>1 != 1 || f.To <= f.From {
		t.Errorf("%+v", f)
	}
	events, _ := contiguous(d.keep(k)[f.TID])
	found := 0
	for i := range events {
		if e := &events[i]; e.SP == f.SP && e.IsExit() && e.Time <= f.To && e.Time >= f.From {
			found++
		}
	}
	if found == 0 {
		t.Error("its exit isn't in the ring")
	}
	w.Arm(false)
	d.do("calls 1000")
	if w.Fired() != 4 || k.Frozen() {
		t.Errorf("fired %d times, frozen: %v", w.Fired(), k.Frozen())
	}
	if f, ok := w.Firing(4); !ok || f.Predicate != 1 {
		t.Errorf("%+v", f)
	}
}

// Behind a call that fired threads go on writing for so long that a recorder which looks soon has lost nothing; then the rings are frozen, so what
// came before that call stays.
func TestRingsAreFrozenAWhileAfterACallFired(t *testing.T) {
	d, w, k := predicateDriver(t, stubSetup{predicates: 1, ids: 1})
	pid := d.cmd.Process.Pid
	w.Arm(true)
	w.Set(0, ring.Predicate{Kind: ring.PredicateNumber, Low: 1000, High: 1000})
	d.do("calls 1000")
	if w.Fired() != 1 || !k.Frozen() {
		t.Fatalf("fired %d times, frozen: %v", w.Fired(), k.Frozen())
	}
	const grace = (64 - 64/4) / 4 // chunks
	d.do("calls %d", grace*ring.ChunkEvents/2)
	if n := k.Dropped(pid); n != 0 {
		t.Errorf("%d entries were dropped before the rings were frozen", n)
	}
	d.do("calls %d", 64*ring.ChunkEvents)
	dropped := k.Dropped(pid)
	if dropped == 0 {
		t.Error("the rings haven't been frozen")
	}
	all, err := k.Take(ring.Ticks())
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, h := range all {
		events += len(h.Events)
	}
	if want := 2 * (d.number("made") - int(dropped)); events != want || all[0].Seq != 0 {
		t.Errorf("%d events from chunk %d on are held, want all %d that were written", events, all[0].Seq, want)
	}
	k.LetGo()
	d.do("calls 3000")
	if n := k.Dropped(pid); n != dropped {
		t.Errorf("%d entries were dropped after the rings were let go", n-dropped)
	}
}

func TestDurationsFire(t *testing.T) {
	d, w, k := predicateDriver(t, stubSetup{predicates: 1})
	w.Arm(true)
	w.Set(0, ring.Predicate{Kind: ring.PredicateDuration, Low: 1 << 40, High: math.MaxInt64})
	d.do("calls 1000")
	if w.Fired() != 0 {
		t.Errorf("fired %d times", w.Fired())
	}
	w.Set(0, ring.Predicate{Kind: ring.PredicateDuration, Low: 0, High: math.MaxInt64})
	d.do("enter")
	open := 0
	w.EachOpen(func(c ring.OpenCall) {
		open++
		if c.Word>>1 != 1 || c.Ctx != uint64(d.cmd.Process.Pid) || c.From == 0 {
			t.Errorf("open: %+v", c)
		}
		if !w.Take(c) {
			t.Error("it is gone")
		}
	})
	if open != 1 {
		t.Errorf("%d calls are open", open)
	}
	d.do("leave")
	if w.Fired() != 0 {
		t.Error("a call that the recorder had taken has fired")
	}
	d.do("calls 1")
	if w.Fired() != 1 || !k.Frozen() {
		t.Errorf("fired %d times", w.Fired())
	}
	w.EachOpen(func(c ring.OpenCall) { t.Errorf("still open: %+v", c) })
}

// Signals whose handlers make tracked calls, in four threads: no call may be mistaken for another, or left in the table.
func TestTrackedCallsUnderSignals(t *testing.T) {
	d, w, _ := predicateDriver(t, stubSetup{predicates: 1, ids: 3})
	w.Set(0, ring.Predicate{Kind: ring.PredicateNumber, Low: 1, High: math.MaxInt64})
	d.do("storm 43")
	d.do("crowd 4 50000")
	d.do("storm 0")
	w.EachOpen(func(c ring.OpenCall) { t.Errorf("still open: %+v", c) })
	made := uint64(d.number("made"))
	if got := uint64(w.Fired()) + w.Untracked(); got != made {
		t.Errorf("%d fired and %d not tracked, of %d calls", w.Fired(), w.Untracked(), made)
	}
}

func TestCallsLeftByLongjmpDontFillTheTable(t *testing.T) {
	d, w, _ := predicateDriver(t, stubSetup{predicates: 1, ids: 3})
	for range 200 {
		d.do("enter")
		d.do("forget")
	}
	open := 0
	w.EachOpen(func(c ring.OpenCall) {
		open++
		w.Forget(c)
	})
	if open != 1 {
		t.Errorf("%d calls are open, want 1: they all had the same stack", open)
	}
	w.EachOpen(func(c ring.OpenCall) { t.Errorf("still open: %+v", c) })
}
