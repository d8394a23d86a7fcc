package timeline

import (
	"cmp"
	"container/heap"
	"context"
	"sort"
)

// Next finds the first call after a position (before it, if backwards) of a
// function that match wants. The order is that of starts in nanoseconds, then of
// lanes, then of rows. To go on, pass the position of the call that was found;
// of calls of a row that start in the same nanosecond one is found.
//
// match may be called more than once for a function, by one goroutine.
func (t *Timeline) Next(ctx context.Context, match func(fn uint32) bool, from Position, backwards bool) (Found, bool, error) {
	s := t.live.Load()
	x := search{s: s, from: from, back: backwards, known: map[uint32]bool{}, match: match}
	for _, l := range s.lanes {
		if c := (searchLane{l: l, at: -1}); x.begin(&c) {
			x.lanes = append(x.lanes, c)
		}
	}
	heap.Init(&x)
	for len(x.lanes) > 0 {
		if err := ctx.Err(); err != nil {
			return Found{}, false, err
		}
		c := &x.lanes[0]
		if x.in != nil && !x.mayBeat(c.bound) {
			break
		}
		if x.wanted(&c.l.segments[c.at]) {
			x.look(c.l, c.at)
		}
		if x.step(c) {
			heap.Fix(&x, 0)
		} else {
			heap.Pop(&x)
		}
	}
	if x.in == nil {
		return Found{}, false, nil
	}
	return s.found(x.in, x.segment, &x.best), true, nil
}

// search goes through the segments of all lanes, the nearest first, and stops
// where none can hold a nearer call.
type search struct {
	s     *snapshot
	from  Position
	back  bool
	match func(uint32) bool
	known map[uint32]bool
	lanes []searchLane // a heap

	best    call
	place   Position
	in      *lane // of best; nil if there is none yet
	segment int
}

// searchLane is where the search is in a lane.
type searchLane struct {
	l     *lane
	at    int
	bound uint64 // in ns: no call of the segment starts before (backwards: after) it
}

// begin finds the first segment that may hold what is looked for.
func (x *search) begin(c *searchLane) bool {
	segs, clock := c.l.segments, &x.s.clock
	if x.back {
		c.at = sort.Search(len(segs), func(i int) bool { return clock.toNS(segs[i].start) > x.from.At }) - 1
	} else {
		c.at = sort.Search(len(segs), func(i int) bool { return clock.toNS(segs[i].end) >= x.from.At })
	}
	return x.bound(c)
}

func (x *search) step(c *searchLane) bool {
	if x.back {
		c.at--
	} else {
		c.at++
	}
	return x.bound(c)
}

func (x *search) bound(c *searchLane) bool {
	if c.at < 0 || c.at >= len(c.l.segments) {
		return false
	}
	seg := &c.l.segments[c.at]
	c.bound = x.s.clock.toNS(seg.start)
	if x.back {
		c.bound = x.s.clock.toNS(seg.end)
	}
	return true
}

func (x *search) mayBeat(bound uint64) bool {
	if x.back {
		return bound >= x.place.At
	}
	return bound <= x.place.At
}

func (x *search) wants(fn uint32) bool {
	is, ok := x.known[fn]
	if !ok {
		is = x.match(fn)
		x.known[fn] = is
	}
	return is
}

// wanted says whether a call of a wanted function begins in a segment.
func (x *search) wanted(seg *segment) bool {
	is := false
	err := eachFunction(seg.summary, func(fn, _ uint32) bool {
		is = x.wants(fn)
		return !is
	})
	return is || err != nil
}

// look takes the nearest call of a segment if it is nearer than the best.
func (x *search) look(l *lane, i int) {
	last, wanted := ^uint32(0), false
	try := func(c *call) {
		if c.fn != last {
			last, wanted = c.fn, x.wants(c.fn)
		}
		if !wanted {
			return
		}
		at := Position{Lane: l.ID, At: x.s.clock.toNS(c.start)}
		if x.in != nil && at.At != x.place.At && at.At < x.place.At == x.back {
			return
		}
		at.Row = l.row(c.key())
		if d := comparePositions(at, x.from); d == 0 || d < 0 != x.back {
			return
		}
		if d := comparePositions(at, x.place); x.in == nil || d != 0 && d < 0 != x.back {
			x.best, x.place, x.in, x.segment = *c, at, l, i
		}
	}
	d := x.s.load(l, i)
	for k := range d.calls {
		try(&d.calls[k])
	}
	from, to := l.spansOf(i)
	for k := from; k < to; k++ {
		c := l.spans[k].call()
		try(&c)
	}
}

func comparePositions(a, b Position) int {
	return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Row, b.Row))
}

func (x *search) Len() int { return len(x.lanes) }
func (x *search) Less(i, j int) bool {
	a, b := &x.lanes[i], &x.lanes[j]
	if a.bound != b.bound {
		return a.bound < b.bound != x.back
	}
	return a.l.ID < b.l.ID
}
func (x *search) Swap(i, j int) { x.lanes[i], x.lanes[j] = x.lanes[j], x.lanes[i] }
func (x *search) Push(any)      {}
func (x *search) Pop() any      { x.lanes = x.lanes[:len(x.lanes)-1]; return nil }
