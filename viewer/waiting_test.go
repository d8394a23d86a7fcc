package viewer

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/callreel/callreel/internal/madereel"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// While a coroutine waits for others its calls have no time of their own, whatever part of the recording is looked at: parts add up to the
// whole, as report has it.
func TestCoroutinesHaveNoTimeOfTheirOwnWhileTheyWait(t *testing.T) {
	events := madereel.Coroutines(rand.New(rand.NewPCG(1, 2)), 20_000, 12, 16<<10, 1000)
	end := events[len(events)-1].Time - 1000
	var p reel.Pairer
	p.Push(events)
	path := madeReel(t, []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}, func(w *reel.Writer) {
		tw := thread(t, w, "main", events...)
		thread(t, w, "other", reel.Entry(1000, 0x7fff0000, 3), reel.Exit(1000+end, 0x7fff0000, 3))
		realtest.Must(t, w.StackTops(tw.Key(), p.Tops()))
	})
	f, err := reel.Open(path)
	realtest.Must(t, err)
	defer f.Close()
	want, all := map[uint32]uint64{}, uint64(0)
	for _, fn := range reel.Summarize(f, reel.SummaryOptions{}).Functions {
		want[fn.ID] = fn.Self
		all += fn.Self
	}
	if all > 2*end {
		t.Errorf("%d ns are somebody's own in %d of two threads", all, end)
	}
	c := serveReels(t, path)
	for _, pieces := range []uint64{1, 2, 7, 50} {
		got, tree := map[uint32]uint64{}, uint64(0)
		for i := range pieces {
			from, to := end*i/pieces, end*(i+1)/pieces
			if i == pieces-1 {
				to = end + 1
			}
			span := fmt.Sprintf("from=%d&to=%d", from, to)
			for _, fn := range ask[functionsAnswer](c, "functions?"+span).Functions {
				got[fn.Func] += fn.SelfNS
				if fn.SelfNS > fn.TotalNS {
					t.Errorf("%s: function %d has more time of its own than in all", span, fn.Func)
				}
			}
			for _, n := range ask[treeAnswer](c, "tree?"+span).Nodes {
				tree += n.SelfNS
			}
		}
		for id, self := range want {
			if got[id] != self {
				t.Errorf("in %d pieces: function %d has %d ns of its own, want %d", pieces, id, got[id], self)
			}
		}
		if tree != all {
			t.Errorf("in %d pieces: the trees' own times are %d ns, want %d", pieces, tree, all)
		}
	}
}
