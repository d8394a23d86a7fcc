package arm64

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
	if s.predicates == 0 {
		s.predicates = 1
	}
	d := startDriver(t, s)
	w, err := d.mem.PredicatesAt(ring.Size(s.chunks))
	if err != nil {
		t.Fatal(err)
	}
	return d, w, ring.NewSnapshotter(d.mem)
}

var predicateForms = map[string]stubSetup{
	"plain":         {},
	"old":           {machine: oldMachine},
	"SVE and SME":   {machine: smeMachine},
	"streaming":     {machine: streaming},
	"stack moved":   {spDelta: true, alive: true},
	"shared":        {shared: true},
	"by the kernel": {noTLS: true, machine: smeMachine},
	"by the stack":  {noTLS: true, stack: true, machine: oldMachine},
	"some threads":  {threads: true},
	"children":      {follow: true},
}

func TestPredicatesKeepEveryRegister(t *testing.T) {
	for name, s := range predicateForms {
		t.Run(name, func(t *testing.T) {
			s.predicates = 4
			d, w, k := predicateDriver(t, s)
			set := func(kind uint32, low, high int64, not bool) {
				for i := range s.predicates {
					w.Set(i, ring.Predicate{Kind: kind, Bits: 8 << (i % 4), Signed: i%2 == 0, Not: not, Low: low, High: high})
				}
			}
			w.Set(0, ring.Predicate{Kind: ring.PredicateNumber, Low: 1, High: math.MaxInt64})
			d.do("state 200") // each exit fires
			if w.Fired() == 0 {
				t.Error("nothing has fired")
			}
			w.Arm(true)
			d.do("state 20")
			if !k.Frozen() {
				t.Error("the rings aren't frozen")
			}
			k.Thaw()
			set(ring.PredicateResult, math.MinInt64, math.MaxInt64, true) // none fires, and all are looked at
			fired := w.Fired()
			d.do("state 200")
			set(ring.PredicateDuration, 0, 0, false)
			set(ring.PredicateDuration, math.MinInt64, -1, false)
			d.do("state 100")
			if n := w.Fired(); n != fired {
				t.Errorf("%d have fired", n-fired)
			}
			set(ring.PredicateResult, -100, 100, false)
			d.do("state 200")
			d.do("gate 0")
			d.do("state 20")
			d.do("gate 1")
		})
	}
}

// The Nth call, and no other, freezes the rings, once; what comes then is counted.
func TestTheNthCallFires(t *testing.T) {
	for name, m := range map[string]machine{"LSE": lseMachine, "old": oldMachine} {
		t.Run(name, func(t *testing.T) {
			d, w, k := predicateDriver(t, stubSetup{machine: m, predicates: 2, ids: 1})
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
			if f.Predicate != 0 || f.TID != d.cmd.Process.Pid || f.Ctx != uint64(f.TID) || f.Word>>1 != 1 || f.To < f.From || w.FrozenAt() != f.To {
				t.Errorf("%+v, frozen at %d", f, w.FrozenAt())
			}
			if g, ok := w.Freezer(0); !ok || g != f {
				t.Errorf("%+v has frozen them, %+v has fired", g, f)
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
		})
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
	all, err := k.Take(emulated())
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for _, h := range all {
		events += len(h.Events)
	}
	if want := 2 * int(d.made()-dropped); events != want || all[0].Seq != 0 {
		t.Errorf("%d events from chunk %d on are held, want all %d that were written", events, all[0].Seq, want)
	}
	k.LetGo()
	d.do("calls 3000")
	if n := k.Dropped(pid); n != dropped {
		t.Errorf("%d entries were dropped after the rings were let go", n-dropped)
	}
}

func TestDurationsFire(t *testing.T) {
	d, w, k := predicateDriver(t, stubSetup{})
	w.Arm(true)
	w.Set(0, ring.Predicate{Kind: ring.PredicateDuration, Low: 1 << 40, High: math.MaxInt64})
	d.do("calls 1000")
	if w.Fired() != 0 {
		t.Errorf("fired %d times", w.Fired())
	}
	w.Set(0, ring.Predicate{Kind: ring.PredicateDuration, Low: 0, High: math.MaxInt64})
	d.do("once 0")
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
	d.do("once 1")
	if w.Fired() != 0 {
		t.Error("a call that the recorder had taken has fired")
	}
	d.do("calls 1")
	if w.Fired() != 1 || !k.Frozen() {
		t.Errorf("fired %d times", w.Fired())
	}
	w.EachOpen(func(c ring.OpenCall) { t.Errorf("still open: %+v", c) })
}

// What a function returns is compared as a number of its type.
func TestResultsFire(t *testing.T) {
	d, w, _ := predicateDriver(t, stubSetup{ids: 1})
	for _, c := range []struct {
		p      ring.Predicate
		result uint64
		fires  bool
	}{
		{ring.Predicate{Bits: 32, Signed: true, Low: math.MinInt64, High: -1}, 0xFFFFFFFF, true},
		{ring.Predicate{Bits: 32, Low: math.MinInt64, High: -1}, 0xFFFFFFFF, false},
		{ring.Predicate{Bits: 8, Signed: true, Low: -128, High: -128}, 0x1280, true},
		{ring.Predicate{Bits: 8, Low: 128, High: 128}, 0x1280, true},
		{ring.Predicate{Bits: 16, Low: 5, High: 7}, 0x10006, true},
		{ring.Predicate{Bits: 16, Low: 5, High: 7}, 0x10008, false},
		{ring.Predicate{Bits: 16, Not: true, Low: 5, High: 7}, 0x10008, true},
		{ring.Predicate{Bits: 64, Low: 1 << 40, High: 1 << 40}, 1 << 40, true},
	} {
		c.p.Kind = ring.PredicateResult
		w.Set(0, c.p)
		before := w.Fired()
		d.do("both %d", c.result)
		if fired := w.Fired() - before; fired != uint32(map[bool]int{true: 1}[c.fires]) {
			t.Errorf("%+v of %#x fired %d times", c.p, c.result, fired)
		}
		if f, ok := w.Firing(w.Fired()); c.fires && (!ok || f.Result != c.result) {
			t.Errorf("%+v of %#x: %+v", c.p, c.result, f)
		}
	}
}

// Signals whose handlers make tracked calls, in four threads: no call may be mistaken for another, or left in the table.
func TestTrackedCallsUnderSignals(t *testing.T) {
	for name, m := range map[string]machine{"LSE": lseMachine, "old": oldMachine, "LSE, step by step": stepping(lseMachine), "old, step by step": stepping(oldMachine)} {
		t.Run(name, func(t *testing.T) {
			calls := 50000
			if m.singleStepping {
				calls = 10000
			}
			d, w, _ := predicateDriver(t, stubSetup{machine: m, ids: 3})
			w.Set(0, ring.Predicate{Kind: ring.PredicateNumber, Low: 1, High: math.MaxInt64})
			d.do("alarm 100")
			d.do("threads 4 %d", calls)
			d.do("calls %d", calls)
			d.do("alarm 0")
			w.EachOpen(func(c ring.OpenCall) { t.Errorf("still open: %+v", c) })
			made := d.made()
			if got := uint64(w.Fired()) + w.Untracked(); got != made {
				t.Errorf("%d fired and %d not tracked, of %d calls", w.Fired(), w.Untracked(), made)
			}
		})
	}
}

func TestCallsThatAreLeftDontFillTheTable(t *testing.T) {
	d, w, _ := predicateDriver(t, stubSetup{ids: 3})
	for range 200 {
		d.do("once 0")
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
