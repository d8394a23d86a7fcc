package budget

import (
	"slices"
	"testing"
	"time"
)

// A function that goes off, comes back and is called as before stays off longer each time.
func TestWhatIsCalledAgainAsBeforeStaysOffLonger(t *testing.T) {
	m, now := memory{}, time.Now()
	f := &Function{ID: 7, Calls: 1000}
	for i, want := range []time.Duration{firstHold, longHold, 3 * longHold, mostHold, mostHold} {
		used := time.Hour
		m.rejected(f, 0.5, 50, now, used)
		if n := m.expected(7, 2, now.Add(want-time.Millisecond), 2*used); n != 4000 {
			t.Errorf("rejected %d times: %d calls are expected", i+1, n)
		}
		if n := m.expected(7, 2, now.Add(want+time.Millisecond), used+want/2-1); n != 4000 {
			t.Errorf("rejected %d times: %d calls are expected of a process that has rested meanwhile", i+1, n)
		}
		if n := m.expected(7, 2, now.Add(want+time.Millisecond), used+want/2+1); n != 0 {
			t.Errorf("rejected %d times: %d calls are expected after %v", i+1, n, want)
		}
		if n := m.expected(7, 2, now.Add(forgetAfter+time.Millisecond), used); n != 0 {
			t.Errorf("rejected %d times: %d calls are expected after %v", i+1, n, forgetAfter)
		}
		now = now.Add(want)
	}
	if n := m.unseen(7, 2, now, 2*time.Hour); n != 4000 {
		t.Errorf("%d calls are expected where none was seen", n)
	}
	if n := m.unseen(7, 2, now.Add(forgetAfter), 2*time.Hour); n != 0 {
		t.Errorf("%d calls are expected where none was seen for long", n)
	}
	m.rejected(f, 0.5, 50, now.Add(forgetAfter+time.Minute), 0)
	if n := m.expected(7, 2, now.Add(forgetAfter+time.Minute+2*firstHold), 2*firstHold); n != 0 {
		t.Errorf("it is as new, and %d calls are expected", n)
	}
}

// A function that alone costs as much as the program itself comes back at once only once, and then hardly ever: a script that runs now and then would
// be recorded each time until that is noticed, and take several times as long.
func TestAFloodIsHeldForLong(t *testing.T) {
	m, now := memory{}, time.Now()
	f := &Function{ID: 7, Calls: 5_000_000}
	for i, want := range []time.Duration{longHold, 3 * longHold, 9 * longHold, 27 * longHold, mostFlood, mostFlood} {
		m.rejected(f, 0.2, 50, now, 0)
		for name, expected := range map[string]func(uint32, float64, time.Time, time.Duration) uint64{"expected": m.expected, "unseen": m.unseen} {
			if n := expected(7, 2, now.Add(want-time.Millisecond), time.Hour); n != 50_000_000 {
				t.Errorf("rejected %d times: %d calls are %s", i+1, n, name)
			}
		}
		if n := m.expected(7, 2, now.Add(want+time.Millisecond), time.Hour); n != 0 {
			t.Errorf("rejected %d times: %d calls are expected after %v", i+1, n, want)
		}
		now = now.Add(2 * want) // when it is called again
	}
	m.rejected(f, 0.2, 50, now.Add(mostFlood), 0)
	if n := m.expected(7, 2, now.Add(mostFlood+longHold+time.Millisecond), time.Hour); n != 0 {
		t.Errorf("it is as new, and %d calls are expected", n)
	}
}

// What was hot in work of another kind stays off in the next sample, which doesn't see it.
func TestWhatWasHotInWorkOfAnotherKindStaysOff(t *testing.T) {
	k, p := keeper()
	ctx := t.Context()
	for range 2 {
		if err := k.sample(ctx, work(10_000, 3), loadOf(work(10_000, 3), 1)); err != nil {
			t.Fatal(err)
		}
		if err := k.look(ctx, work(10_000, 4), loadOf(work(10_000, 4), 1)); err != nil {
			t.Fatal(err)
		}
		if err := k.again(ctx); err != nil { // in which nothing is called
			t.Fatal(err)
		}
		clear(p.off)
		clear(p.out)
		clear(k.off)
	}
	list := work(10_000, 5)
	if err := k.sample(ctx, list, loadOf(list, 1)); err != nil {
		t.Fatal(err)
	}
	if got := sorted(p.off); !slices.Equal(got, []uint32{3, 4, 5}) {
		t.Errorf("off %v", got)
	}
}

// Pieces of work that are each within the budget for themselves, or nearly, are held to it together.
func TestALoadOfManyShortPiecesIsHeldToTheBudgetAsAWhole(t *testing.T) {
	k, p := keeper()
	ctx := t.Context()
	if err := k.sample(ctx, work(10_000, 3), loadOf(work(10_000, 3), 1)); err != nil {
		t.Fatal(err)
	}
	for i := range 120 { // they are 1.98 %, and 1.8 % may be spent in the long run
		list := []Function{{ID: uint32(10 + i%4), Calls: 1_980, Half: 60, P99: 100, Max: 900}}
		if err := k.look(ctx, list, loadOf(list, 0.01)); err != nil {
			t.Fatal(err)
		}
	}
	if s := k.Stats(); len(p.off) < 2 || s.Measured > 0.0185 {
		t.Errorf("off %v, %+v", sorted(p.off), s)
	}
}

// What functions have written before they went off is read late, and costs nothing then.
func TestWhatWasWrittenBeforeIsNotHeldAgainstTheBudget(t *testing.T) {
	k, p := keeper()
	ctx := t.Context()
	list := work(10_000, 3)
	if err := k.sample(ctx, list, loadOf(list, 1)); err != nil {
		t.Fatal(err)
	}
	late := work(1_000, 3)
	late[0].Calls, late[1].Calls = 1000, 10_000
	l := loadOf(late, 0.1)
	l.dropped = 500_000
	l.all += l.dropped
	if err := k.look(ctx, late, l); err != nil {
		t.Fatal(err)
	}
	if got := sorted(p.off); !slices.Equal(got, []uint32{3}) {
		t.Errorf("off %v", got)
	}
	if s := k.Stats(); s.Measured > 0.02 {
		t.Errorf("%+v", s)
	}
}

// A flood that is held stays off while all else is on for a moment: if it came just then it would fill the rings.
func TestAFloodThatIsHeldStaysOffInASample(t *testing.T) {
	k, p := keeper()
	p.busy = true
	ctx := t.Context()
	list := append(work(1000, 3), Function{ID: 4, Calls: 20_000_000, Half: 20, P99: 40, Max: 800})
	if err := k.sample(ctx, list, loadOf(list, 1)); err != nil {
		t.Fatal(err)
	}
	if err := k.close(ctx); err != nil {
		t.Fatal(err)
	}
	if got := sorted(p.out); !slices.Equal(got, []uint32{3, 4}) {
		t.Fatalf("out %v", got)
	}
	if err := k.again(ctx); err != nil {
		t.Fatal(err)
	}
	if !p.out[4] || !p.off[4] || k.off[4] == nil || slices.ContainsFunc(p.offs, func(o Off) bool { return o.ID == 4 }) {
		t.Errorf("off %v, out %v, %+v", p.off, p.out, p.offs)
	}
	if !slices.ContainsFunc(p.offs, func(o Off) bool { return o.ID == 3 }) {
		t.Errorf("function 3 hasn't been on: %+v", p.offs)
	}
	k.known.at(4).held, k.known.at(4).heldCPU = time.Now().Add(-time.Second), 0
	if err := k.again(ctx); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(p.offs, func(o Off) bool { return o.ID == 4 }) {
		t.Errorf("function 4 is held no more, and hasn't been on: %+v", p.offs)
	}
}
