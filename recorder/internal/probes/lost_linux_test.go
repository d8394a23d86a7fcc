package probes

import (
	"testing"

	"github.com/callreel/callreel/reel"
)

// Of a call that is open as its function's exits are switched off nothing more is counted, once all has come that its thread may have written.
func TestCallsWhoseEndsAreLostAreForgotten(t *testing.T) {
	s := New(Config{})
	const perSecond = 1_000_000 // ticks
	const late = 5_000
	tally := reel.NewLiveTally(false)
	tally.Known(10, 0)
	tally.Begin(0)
	thread := tally.Thread(1)
	thread.Push([]reel.Event{reel.Entry(100, 1000, 1), reel.Entry(200, 900, 2), reel.Entry(300, 800, 3)})
	forget := func(before uint64) (ids []uint32, since uint64) {
		entries, since := s.Forget(thread, before, perSecond)
		for _, e := range entries {
			ids = append(ids, e.ID())
		}
		return ids, since
	}
	s.touched.Store(true)
	s.loseEnds(2, 1000)
	if ids, _ := forget(100_000); len(ids) != 0 {
		t.Errorf("%v, but 3 is open", ids)
	}
	s.loseEnds(3, 2000)
	if ids, _ := forget(2000 + late - 1); len(ids) != 0 {
		t.Errorf("%v, but it may come yet", ids)
	}
	if ids, since := forget(2000 + late); len(ids) != 2 || ids[0] != 3 || ids[1] != 2 || since != 2000 {
		t.Errorf("%v since %d", ids, since)
	}
	if e, open := thread.Open(0); !open || e.ID() != 1 {
		t.Errorf("%v, %v is open", e, open)
	}
	s.endsComeAgain(2)
	thread.Push([]reel.Event{reel.Entry(9000, 900, 2)})
	if ids, _ := forget(100_000); len(ids) != 0 {
		t.Errorf("%v, whose end will come", ids)
	}
	thread.Push([]reel.Event{reel.Exit(9100, 900, 2), reel.Exit(9200, 1000, 1)})
	want := map[uint32]reel.LiveFunction{1: {Calls: 1, Ended: 1, Self: 9000, Max: 9100}, 2: {Calls: 2, Ended: 1, Self: 100, Max: 100}, 3: {Calls: 1}}
	for id, f := range tally.Take(500_000).Functions {
		if *f != want[id] {
			t.Errorf("function %d: %+v, want %+v", id, *f, want[id])
		}
		delete(want, id)
	}
	if len(want) > 0 {
		t.Errorf("nothing of %v", want)
	}
}
