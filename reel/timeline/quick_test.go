package timeline

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/internal/bigreel"
	"github.com/callreel/callreel/internal/realtest"
)

// A quick answer may be coarse, but is right: each call is in one bar, and bars
// are where calls are.
func TestQuickViewsAreRight(t *testing.T) {
	name := filepath.Join(t.TempDir(), "big.reel")
	realtest.Must(t, bigreel.Write(name, bigreel.Shape{Events: 4_000_000, Threads: 1, Depth: 30, Seed: 1}))
	f, tl := openTest(t, name, Options{Workers: 2, atOnce: 100_000, segment: 1 << 14, small: 1000})
	m := newModel(f)
	rng := rand.New(rand.NewPCG(1, 1))
	coarse, fromLevels := 0, 0
	for _, zoom := range []uint{0, 1, 3, 8} {
		span := tl.Duration() >> zoom
		from := rng.Uint64N(tl.Duration() - span + 1)
		q := Query{From: from, To: from + span, Width: 1500, Quick: true}
		if zoom == 0 {
			q.Width = 100
		}
		for r := range 30 {
			q.Lanes = append(q.Lanes, LaneRows{0, r, 1})
		}
		tl.live.Load().cache.clear()
		v, err := tl.View(t.Context(), q)
		realtest.Must(t, err)
		a, b := m.clock.toTicks(q.From), m.clock.toTicks(q.To)
		if v.Coarse {
			coarse++
			if v.Pixels < 2 {
				t.Errorf("a coarse view of %d pixels", v.Pixels)
			}
		}
		checkQuick(t, m, v, a, b, uint64(v.Pixels)<<grainOf(b-a, q.Width))
		q.Quick = false
		v, err = tl.View(t.Context(), q)
		realtest.Must(t, err)
		if v.Coarse {
			t.Error("a view that wasn't to be quick is coarse")
		}
		if tl.live.Load().cache.bytes == 0 {
			fromLevels++
		}
		for _, row := range v.Rows {
			var want []bar
			for _, x := range m.bars(m.lanes[0].rows[row.Row], grainOf(b-a, q.Width)) {
				if x.start < b && (x.end > a || x.start >= a) {
					want = append(want, x)
				}
			}
			if len(want) != len(row.Bars) {
				t.Fatalf("zoom %d, row %d: %d bars, want %d", zoom, row.Row, len(row.Bars), len(want))
			}
			for i := range want {
				w := m.clock.bar(&want[i])
				w.Func = row.Bars[i].Func
				if w != row.Bars[i] {
					t.Fatalf("zoom %d, row %d: %+v, want %+v", zoom, row.Row, row.Bars[i], w)
				}
			}
		}
	}
	if coarse == 0 || coarse == 4 || fromLevels == 0 {
		t.Errorf("%d views were coarse, %d came from the index", coarse, fromLevels)
	}
}

// checkQuick checks that the bars of each row are the calls that overlap the
// range, as whole bars, and no stretch free of calls as wide as grain is in one.
func checkQuick(t *testing.T, m *model, v *View, from, to, grain uint64) {
	t.Helper()
	for _, row := range v.Rows {
		calls := m.lanes[0].rows[row.Row]
		i := 0
		for _, b := range row.Bars {
			for i < len(calls) && m.clock.toNS(calls[i].Start) < b.Start {
				if calls[i].End > from {
					t.Fatalf("row %d: a call at %d is in no bar", row.Row, calls[i].Start)
				}
				i++
			}
			n, end := uint32(0), uint64(0)
			for ; i < len(calls) && n < b.Calls; i++ {
				if n > 0 && calls[i].Start-end >= grain {
					t.Fatalf("row %d: nothing from %d to %d, in a bar", row.Row, end, calls[i].Start)
				}
				n, end = n+1, calls[i].End
			}
			if n != b.Calls || m.clock.toNS(end) != b.Start+b.Duration {
				t.Fatalf("row %d: %+v has %d calls, to %d", row.Row, b, n, m.clock.toNS(end))
			}
		}
		for ; i < len(calls); i++ {
			if calls[i].Start < to {
				t.Fatalf("row %d: a call at %d is in no bar", row.Row, calls[i].Start)
			}
		}
	}
}

// clear forgets everything.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
	c.order.Init()
	c.bytes = 0
}

func TestCacheKeepsToItsLimit(t *testing.T) {
	c := newCache(1000)
	made := 0
	get := func(key uint64) {
		c.get(key, func() (any, int64) { made++; return key, 300 })
	}
	for _, key := range []uint64{1, 2, 3, 1, 4, 1, 2} {
		get(key)
	}
	// 4 pushed 2 out, which had waited longest; then 2 pushed 3 out.
	if c.bytes > 1000 || made != 5 || c.peek(1) == nil || c.peek(3) != nil {
		t.Errorf("%d bytes, %d made", c.bytes, made)
	}
}
