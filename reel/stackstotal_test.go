package reel

import (
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Calls of one function on stacks that take turns overlap, and none is made by another: total is at least self.
func TestCallsOnOtherStacksArePartOfTotal(t *testing.T) {
	h := testHeader
	h.Clock.BaseTick = 1000
	w, name := create(t, h)
	_, err := w.AddFunctions([]Function{{Name: "coroutine"}, {Name: "yield"}})
	realtest.Must(t, err)
	tw := addThread(t, w, Thread{TID: 7})
	one, two := uint32(base), uint32(base-1<<26)
	realtest.Must(t, tw.Append([]Event{
		Entry(1000, one, 1), Entry(1100, one-32, 2),
		Entry(1200, two, 1), Entry(1300, two-32, 1), Entry(1350, two-64, 2),
		Exit(1400, one-32, 2), Entry(1450, one-32, 2),
		Exit(1500, two-64, 2), Exit(1600, two-32, 1), // made by the one around it
		Exit(1700, one-32, 2), Exit(1800, one, 1),
		Exit(1900, two, 1),
	}))
	realtest.Must(t, w.Close())
	for _, f := range Summarize(open(t, name), SummaryOptions{}).Functions {
		want := map[string]uint64{"coroutine": 800 + 700, "yield": 300 + 150 + 250}[f.Name]
		if f.Total != want || f.Total < f.Self || f.Unfinished+f.Implicit != 0 {
			t.Errorf("%+v, want a total of %d", f, want)
		}
	}
}
