package timeline

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// small makes segments so short that a small reel has many.
func small() Options { return Options{segment: 700, small: 20, atOnce: 1500, Workers: 2} }

func openTest(t testing.TB, name string, opt Options) (*reel.File, *Timeline) {
	t.Helper()
	f, err := reel.Open(name)
	realtest.Must(t, err)
	t.Cleanup(func() { f.Close() })
	tl, err := Open(t.Context(), f, opt)
	realtest.Must(t, err)
	return f, tl
}

func TestAnswersAreThoseOfAllCalls(t *testing.T) {
	for seed := range uint64(4) {
		for _, mode := range []reel.ClockMode{reel.ClockFull, reel.ClockExit} {
			for _, rate := range []uint64{1e9, 2_450_000_000} {
				t.Run(fmt.Sprintf("%v %d %d", mode, rate, seed), func(t *testing.T) {
					r := newTestReel(t, seed, rate, mode, someThreads(seed, 6000)...)
					r.finish(t, mode)
					f, tl := openTest(t, r.name, small())
					check(t, tl, newModel(f), rand.New(rand.NewPCG(seed, 3)))
				})
			}
		}
	}
}

func TestGrowingReelAnswersAsAFinishedOne(t *testing.T) {
	r := newTestReel(t, 1, 1e9, reel.ClockFull, someThreads(1, 8000)...)
	r.write(t, 500)
	_, tl := openTest(t, r.name, small())
	rng := rand.New(rand.NewPCG(1, 3))
	for more := true; more; {
		check(t, tl, newModel(tl.File()), rng)
		if t.Failed() {
			return
		}
		more = r.write(t, 1+rng.IntN(1500))
		changed, err := tl.Refresh(t.Context())
		realtest.Must(t, err)
		if !changed {
			t.Fatal("the reel has grown, and nothing changed")
		}
	}
	r.closeWithIndex(t)
	if changed, err := tl.Refresh(t.Context()); err != nil || !changed {
		t.Fatal("the reel was closed, and nothing changed", err)
	}
	if !tl.Indexed() {
		t.Error("the index that the recorder stored was not used")
	}
	check(t, tl, newModel(tl.File()), rng)
	if changed, err := tl.Refresh(t.Context()); err != nil || changed {
		t.Fatal("a closed reel changed", err)
	}
}

// check compares all answers with those of the model.
func check(t *testing.T, tl *Timeline, m *model, rng *rand.Rand) {
	t.Helper()
	checkSome(t, tl, m, rng, 30)
}

// checkSome is check with about so many queries of each kind.
func checkSome(t *testing.T, tl *Timeline, m *model, rng *rand.Rand, n int) {
	t.Helper()
	lanes := tl.Lanes()
	if len(lanes) != len(m.lanes) {
		t.Fatalf("%d lanes, want %d", len(lanes), len(m.lanes))
	}
	for i, l := range lanes {
		if w := m.lanes[i]; l.Rows != len(w.rows) || l.Calls != w.calls || int(l.ID) != i {
			t.Fatalf("lane %d: %d rows, %d calls, want %d, %d", i, l.Rows, l.Calls, len(w.rows), w.calls)
		}
	}
	checkViews(t, tl, m, rng, n)
	checkCallAt(t, tl, m, rng, 10*n)
	checkNext(t, tl, m, rng, n)
	checkReplay(t, tl, m, rng, n/2)
	checkOverview(t, tl, m)
}

// randomRange is a range of any length, beginning anywhere.
func randomRange(rng *rand.Rand, end uint64) (from, to uint64) {
	length := (end + 1) >> rng.IntN(16)
	from = rng.Uint64N(end + 1)
	if rng.IntN(4) == 0 {
		from = 0
	}
	return from, from + max(1, length)
}

func checkViews(t *testing.T, tl *Timeline, m *model, rng *rand.Rand, n int) {
	t.Helper()
	merged := false
	for range n {
		from, to := randomRange(rng, tl.Duration())
		q := Query{From: from, To: to, Width: 1 + rng.IntN(400)}
		for i, l := range tl.Lanes() {
			first := rng.IntN(l.Rows + 1)
			q.Lanes = append(q.Lanes, LaneRows{uint32(i), first, rng.IntN(l.Rows + 2)}, LaneRows{uint32(i), 0, first})
		}
		v, err := tl.View(t.Context(), q)
		realtest.Must(t, err)
		got := map[[2]int][]Bar{}
		for _, row := range v.Rows {
			got[[2]int{int(row.Lane), row.Row}] = row.Bars
		}
		a, b := m.clock.toTicks(from), m.clock.toTicks(to)
		grain := grainOf(b-a, q.Width)
		for _, lr := range q.Lanes {
			l := m.lanes[lr.Lane]
			for r := lr.First; r < min(len(l.rows), lr.First+lr.Count); r++ {
				var want []bar
				for _, x := range m.bars(l.rows[r], grain) {
					if x.start < b && (x.end > a || x.start >= a) {
						want = append(want, x)
					}
				}
				merged = merged || slices.ContainsFunc(want, func(b bar) bool { return b.calls > 1 })
				sameBars(t, m, l.rows[r], got[[2]int{int(lr.Lane), r}], want)
				if t.Failed() {
					t.Fatalf("range %d to %d, width %d (grain %d), lane %d, row %d", from, to, q.Width, grain, lr.Lane, r)
				}
				delete(got, [2]int{int(lr.Lane), r})
			}
		}
		if len(got) > 0 {
			t.Fatalf("%d rows that weren't asked for", len(got))
		}
	}
	if !merged && n > 10 {
		t.Error("nothing was merged in any view")
	}
}

func sameBars(t *testing.T, m *model, row []reel.Call, got []Bar, want []bar) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d bars, want %d", len(got), len(want))
		return
	}
	for i := range want {
		w := m.clock.bar(&want[i])
		g := got[i]
		in := slices.ContainsFunc(row, func(c reel.Call) bool { return c.Func == g.Func && c.Start >= want[i].start && c.End <= want[i].end })
		if !in || w.Calls == 1 && g.Func != w.Func {
			t.Errorf("bar %d: function %d is not in it", i, g.Func)
		}
		if w.Func = g.Func; g != w {
			t.Errorf("bar %d: %+v, want %+v", i, g, w)
		}
	}
}

// plain describes a call without its callers.
func (m *model) plain(lane, r int, c *reel.Call) Found {
	f := Found{Lane: uint32(lane), Row: r, Func: c.Func, Start: m.clock.toNS(c.Start), Tick: c.Start + m.clock.first, Depth: c.Depth, Stack: c.Stack, Flags: c.Flags}
	f.Duration = m.clock.toNS(c.End) - f.Start
	f.Self = m.clock.toNS(c.Self())
	return f
}

func (m *model) found(lane, r int, c *reel.Call) Found {
	l := m.lanes[lane]
	f := m.plain(lane, r, c)
	for d := range c.Depth {
		list := l.stacks[c.Stack][d]
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Start <= c.Start {
				f.Callers = append(f.Callers, m.plain(lane, r-c.Depth+d, &list[i]))
				break
			}
		}
	}
	return f
}

func sameFound(a, b Found) bool {
	x, y := a, b
	x.Callers, y.Callers = nil, nil
	return fmt.Sprint(x) == fmt.Sprint(y) && slices.EqualFunc(a.Callers, b.Callers, sameFound)
}

func checkCallAt(t *testing.T, tl *Timeline, m *model, rng *rand.Rand, n int) {
	t.Helper()
	hits := 0
	for range n {
		lane := rng.IntN(len(m.lanes))
		l := m.lanes[lane]
		row := rng.IntN(len(l.rows) + 1)
		at := rng.Uint64N(tl.Duration() + 1)
		var want *reel.Call
		if row < len(l.rows) {
			if rng.IntN(2) == 0 {
				at = m.clock.toNS(l.rows[row][rng.IntN(len(l.rows[row]))].Start)
			}
			for i := range l.rows[row] {
				if c := &l.rows[row][i]; m.clock.toNS(c.Start) <= at {
					want = c
				}
			}
			if want != nil && m.clock.toNS(want.Start) != at && m.clock.toNS(want.End) <= at {
				want = nil
			}
		}
		got, ok, err := tl.CallAt(t.Context(), uint32(lane), row, at)
		realtest.Must(t, err)
		if ok != (want != nil) {
			t.Fatalf("call at %d in lane %d, row %d: %v, want %v", at, lane, row, ok, want)
		}
		if !ok {
			continue
		}
		hits++
		if w := m.found(lane, row, want); !sameFound(got, w) {
			t.Fatalf("call at %d:\n%+v, want\n%+v", at, got, w)
		}
	}
	if hits < n/15 {
		t.Errorf("only %d calls were found", hits)
	}
}

func checkNext(t *testing.T, tl *Timeline, m *model, rng *rand.Rand, n int) {
	t.Helper()
	type placed struct {
		p Position
		c *reel.Call
	}
	for _, back := range []bool{false, true} {
		wanted := map[uint32]bool{uint32(1 + rng.IntN(40)): true, uint32(41 + rng.IntN(3)): true}
		var all []placed
		for i, l := range m.lanes {
			for r := range l.rows {
				for k := range l.rows[r] {
					if c := &l.rows[r][k]; wanted[c.Func] {
						all = append(all, placed{Position{uint32(i), r, m.clock.toNS(c.Start)}, c})
					}
				}
			}
		}
		slices.SortFunc(all, func(a, b placed) int { return comparePositions(a.p, b.p) })
		all = slices.CompactFunc(all, func(a, b placed) bool { return a.p == b.p })
		for range n {
			from := Position{uint32(rng.IntN(len(m.lanes))), rng.IntN(8), rng.Uint64N(tl.Duration() + 1)}
			i, same := slices.BinarySearchFunc(all, from, func(a placed, p Position) int { return comparePositions(a.p, p) })
			step := 1
			if back {
				i, step = i-1, -1
			} else if same {
				i++
			}
			for range 3 {
				got, ok, err := tl.Next(t.Context(), func(fn uint32) bool { return wanted[fn] }, from, back)
				realtest.Must(t, err)
				if want := i >= 0 && i < len(all); ok != want {
					t.Fatalf("next from %+v (backwards: %v): found %v, want %v", from, back, ok, want)
				}
				if !ok {
					break
				}
				from = Position{got.Lane, got.Row, got.Start}
				if from != all[i].p || !wanted[got.Func] {
					t.Fatalf("next is %+v, want %+v", from, all[i].p)
				}
				i += step
			}
		}
	}
}

func checkReplay(t *testing.T, tl *Timeline, m *model, rng *rand.Rand, n int) {
	t.Helper()
	order := func(a, b reel.Call) int {
		return cmp.Or(cmp.Compare(a.Stack, b.Stack), cmp.Compare(a.Depth, b.Depth), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Func, b.Func), cmp.Compare(a.Inside, b.Inside))
	}
	for range n {
		lane := rng.IntN(len(m.lanes))
		from, to := randomRange(rng, tl.Duration())
		a, b := m.clock.toTicks(from), m.clock.toTicks(to)
		var want, got []reel.Call
		for _, row := range m.lanes[lane].rows {
			for _, c := range row {
				if c.Start < b && (c.End > a || c.Start >= a) {
					c.SP = 0
					want = append(want, c)
				}
			}
		}
		open := map[int]int{}
		err := tl.Replay(t.Context(), uint32(lane), from, to, func(c *reel.Call) bool {
			x := *c
			x.Start -= m.clock.first
			x.End -= m.clock.first
			got = append(got, x)
			if d, ok := open[c.Stack]; ok && c.Depth < d-1 {
				t.Errorf("a call at depth %d came before the one around depth %d", c.Depth, d)
			}
			open[c.Stack] = c.Depth
			return true
		})
		realtest.Must(t, err)
		slices.SortFunc(want, order)
		slices.SortFunc(got, order)
		if !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Errorf("call %d: %+v, want %+v", i, got[i], want[i])
					break
				}
			}
			t.Fatalf("replay of lane %d from %d to %d: %d calls, want %d", lane, from, to, len(got), len(want))
		}
	}
}

func checkOverview(t *testing.T, tl *Timeline, m *model) {
	t.Helper()
	want := uint64(0)
	for _, l := range m.lanes {
		if len(l.rows) > 0 {
			for _, c := range l.rows[0] {
				first := tl.live.Load().window()
				want += m.clock.toNS(max(c.End, first) - max(c.Start, first))
			}
		}
	}
	for _, width := range []int{1, 100, 9000} {
		o, err := tl.Overview(t.Context(), width)
		realtest.Must(t, err)
		got := uint64(0)
		for _, busy := range o.Busy {
			got += busy
		}
		if len(o.Busy) != width || got > want+want/100+10 || got < want-want/100-uint64(width)-uint64(len(m.lanes))-4100 {
			t.Errorf("overview of %d columns: %d columns with %d ns, want %d", width, len(o.Busy), got, want)
		}
	}
}
