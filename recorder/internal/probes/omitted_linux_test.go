package probes

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/reel"
)

// Where exits are on again entries count from then on, whatever is read late: a recorder that can't keep up need not have read all before.
func TestEntriesFromBeforeExitsCameBackAreLeftOut(t *testing.T) {
	s := New(Config{})
	s.touched.Store(true)
	s.update(7, wasOff|entriesOff|exitsOff, 0)
	s.comeBack([]*switched{{id: 7}}, nil, 1000)
	s.update(7, 0, entriesOff)
	var open OpenCalls
	pick := func(events ...reel.Event) (times []uint64) {
		got, _ := s.Pick(&open, events, nil)
		for _, e := range got {
			times = append(times, e.Time)
		}
		return times
	}
	// The first began while exits were off, the exit at 1001 has no entry, and the rest is whole.
	got := pick(reel.Entry(10, 900, 1), reel.Entry(999, 800, 7), reel.Exit(1001, 800, 7), reel.Entry(1000, 800, 7), reel.Exit(1100, 800, 7), reel.Exit(1200, 900, 1))
	if want := []uint64{10, 1000, 1100, 1200}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if events, entries := s.Omitted(); events != 2 || entries != 1 {
		t.Errorf("%d events, %d entries left out", events, entries)
	}
	s.update(7, entriesOff|exitsOff, 0)
	if got := pick(reel.Entry(2000, 800, 7)); len(got) != 0 {
		t.Errorf("%v, but exits are off", got)
	}
	// What was written before exits were switched off, in a hurry, is whole, and is read later.
	s.comeBack([]*switched{{id: 7}}, map[uint32]uint64{7: 2600}, 3000)
	if got := pick(reel.Entry(2500, 800, 7), reel.Exit(2550, 800, 7), reel.Entry(2600, 800, 7), reel.Entry(3001, 700, 7)); !slices.Equal(got, []uint64{2500, 2550, 3001}) {
		t.Errorf("%v", got)
	}
}
