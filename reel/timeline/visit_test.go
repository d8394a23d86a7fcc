package timeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

func TestVisitsAreOfAllCallsOpenInTheRange(t *testing.T) {
	for seed := range uint64(3) {
		for _, mode := range []reel.ClockMode{reel.ClockFull, reel.ClockExit} {
			t.Run(fmt.Sprint(mode, seed), func(t *testing.T) {
				r := newTestReel(t, seed, 2_450_000_000, mode, someThreads(seed, 6000)...)
				r.finish(t, mode)
				f, tl := openTest(t, r.name, small())
				checkVisits(t, tl, newModel(f), rand.New(rand.NewPCG(seed, 4)))
			})
		}
	}
}

func TestVisitsOfGoroutinesAreOfAllCallsOpenInTheRange(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newGoroutineReel(t, seed, goroutineEvents(seed, 4, 25, 15000))
			for r.write(t, 1000) {
			}
			realtest.Must(t, r.w.Close())
			f, tl := openTest(t, r.name, small())
			checkVisits(t, tl, newGoroutineModel(f, tl.Lanes()), rand.New(rand.NewPCG(seed, 4)))
		})
	}
}

// visited is a call of a lane.
type visited struct {
	lane uint32
	reel.Call
}

func checkVisits(t *testing.T, tl *Timeline, m *model, rng *rand.Rand) {
	t.Helper()
	for i := range 40 {
		from, to := randomRange(rng, tl.Duration())
		if i == 0 {
			from, to = 0, math.MaxUint64
		}
		var lanes []uint32
		for lane := range m.lanes {
			if i%3 != 0 && rng.IntN(2) == 0 {
				lanes = append(lanes, uint32(lane))
			}
		}
		checkVisit(t, tl, m, lanes, from, to)
		checkVisitFunction(t, tl, m, lanes, uint32(1+rng.IntN(45)), from, to)
		if t.Failed() {
			t.Fatalf("from %d to %d of %d, lanes %v", from, to, tl.Duration(), lanes)
		}
	}
}

// checkVisit looks whether calls nest, and whether they are those of the model.
func checkVisit(t *testing.T, tl *Timeline, m *model, lanes []uint32, from, to uint64) {
	t.Helper()
	a, b := m.clock.toTicks(from), uint64(math.MaxUint64)
	if to != math.MaxUint64 {
		b = m.clock.toTicks(to)
	}
	type key struct {
		lane  uint32
		stack int
	}
	open := map[key][]reel.Call{}
	var got, want []visited
	err := tl.Visit(t.Context(), lanes, from, to, Visitor{
		Enter: func(lane uint32, c *reel.Call) {
			k := key{lane, c.Stack}
			if c.Depth != len(open[k]) {
				t.Errorf("lane %d: a call at depth %d was entered where %d were open", lane, c.Depth, len(open[k]))
			}
			open[k] = append(open[k], *c)
		},
		Leave: func(lane uint32, c *reel.Call) bool {
			k := key{lane, c.Stack}
			n := len(open[k])
			if n == 0 || open[k][n-1].Func != c.Func || open[k][n-1].Start != c.Start || open[k][n-1].Depth != c.Depth {
				t.Fatalf("lane %d: %+v was left, with these open: %+v", lane, c, open[k])
			}
			open[k] = open[k][:n-1]
			x := visited{lane, *c}
			x.Start, x.End, x.SP = m.clock.rel(c.Start), m.clock.rel(c.End), 0
			if x.End > a || x.Start >= a { // others were open at the very beginning
				got = append(got, x)
			} else if x.End != a {
				t.Errorf("lane %d: %+v is not open in the range", lane, c)
			}
			return true
		},
	})
	realtest.Must(t, err)
	for k, list := range open {
		if len(list) > 0 {
			t.Errorf("lane %d: %d calls were never left", k.lane, len(list))
		}
	}
	for lane, l := range m.lanes {
		if lanes != nil && !slices.Contains(lanes, uint32(lane)) {
			continue
		}
		for _, row := range l.rows {
			for _, c := range row {
				if c.Start < b && (c.End > a || c.Start >= a) {
					c.SP = 0
					want = append(want, visited{uint32(lane), c})
				}
			}
		}
	}
	slices.SortFunc(got, visitOrder)
	slices.SortFunc(want, visitOrder)
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("call %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d calls, want %d", len(got), len(want))
	}
}

// checkVisitFunction looks whether the calls are those of the model.
func checkVisitFunction(t *testing.T, tl *Timeline, m *model, lanes []uint32, fn uint32, from, to uint64) {
	t.Helper()
	a, b := m.clock.toTicks(from), uint64(math.MaxUint64)
	if to != math.MaxUint64 {
		b = m.clock.toTicks(to)
	}
	var got, want []visited
	realtest.Must(t, tl.VisitFunction(t.Context(), lanes, fn, from, to, func(lane uint32, c *reel.Call) bool {
		x := visited{lane, *c}
		x.Start, x.End, x.SP = m.clock.rel(c.Start), m.clock.rel(c.End), 0
		if x.End > a || x.Start >= a {
			got = append(got, x)
		}
		return true
	}))
	for lane, l := range m.lanes {
		if lanes != nil && !slices.Contains(lanes, uint32(lane)) {
			continue
		}
		for _, row := range l.rows {
			for _, c := range row {
				if c.Func == fn && c.Start < b && (c.End > a || c.Start >= a) {
					c.SP = 0
					want = append(want, visited{uint32(lane), c})
				}
			}
		}
	}
	slices.SortFunc(got, visitOrder)
	slices.SortFunc(want, visitOrder)
	if !slices.Equal(got, want) {
		t.Errorf("function %d: %d calls, want %d", fn, len(got), len(want))
	}
}

func visitOrder(x, y visited) int {
	return cmp.Or(cmp.Compare(x.lane, y.lane), cmp.Compare(x.Stack, y.Stack), cmp.Compare(x.Depth, y.Depth), cmp.Compare(x.Start, y.Start),
		cmp.Compare(x.End, y.End), cmp.Compare(x.Func, y.Func), cmp.Compare(x.Inside, y.Inside))
}

func TestVisitEndsWhenItIsToldTo(t *testing.T) {
	r := newTestReel(t, 1, 1e9, reel.ClockFull, someThreads(1, 6000)...)
	for r.write(t, 1000) {
	}
	realtest.Must(t, r.w.Close())
	_, tl := openTest(t, r.name, small())
	calls := 0
	v := Visitor{Enter: func(uint32, *reel.Call) {}, Leave: func(uint32, *reel.Call) bool { calls++; return calls < 10 }}
	if err := tl.Visit(t.Context(), nil, 0, math.MaxUint64, v); err != nil || calls != 10 {
		t.Errorf("%d calls, %v", calls, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tl.Visit(ctx, nil, 0, math.MaxUint64, v); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
