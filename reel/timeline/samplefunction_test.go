package timeline

import (
	"cmp"
	"context"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/reel"
)

// The longest calls are those that visiting all finds, and the sample is of such.
func TestSampledCallsAreTheLongestAndSomeOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "big.reel")
	if err := bigreel.Write(path, bigreel.Shape{Events: 3_000_000, Threads: 3, Depth: 12, Seed: 5}); err != nil {
		t.Fatal(err)
	}
	f, err := reel.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tl, err := Open(context.Background(), f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	type call struct {
		start, end uint64
		lane       uint32
		depth      int
	}
	for _, fn := range []uint32{1, 7, 100, 599} {
		var all []call
		known := map[call]bool{}
		_ = tl.VisitFunction(context.Background(), nil, fn, 0, math.MaxUint64, func(lane uint32, c *reel.Call) bool {
			all = append(all, call{c.Start, c.End, lane, c.Depth})
			known[all[len(all)-1]] = true
			return true
		})
		slices.SortFunc(all, func(a, b call) int { return cmp.Compare(b.end-b.start, a.end-a.start) })
		for _, longest := range []int{1, 20} {
			given, sampled := map[call]bool{}, 0
			total, err := tl.SampleFunction(context.Background(), fn, 3, longest, 2, func(lane uint32, c *reel.Call, isSampled bool) {
				given[call{c.Start, c.End, lane, c.Depth}] = true
				if isSampled {
					sampled++
				}
			})
			if err != nil || total < uint64(len(all)) || len(all) > 0 && sampled == 0 {
				t.Errorf("function %d: %d calls of %d, %d sampled, %v", fn, total, len(all), sampled, err)
			}
			for c := range given {
				if !known[c] {
					t.Fatalf("function %d: %+v is no call", fn, c)
				}
			}
			for _, c := range all[:min(longest, len(all))] {
				if !given[c] {
					t.Errorf("function %d: %+v is missing, which is among the %d longest", fn, c, longest)
				}
			}
		}
	}
}
