package timeline

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/callreel/callreel/reel"
)

// View answers a query. Lanes and rows that there are not are left out.
func (t *Timeline) View(ctx context.Context, q Query) (*View, error) {
	s := t.live.Load()
	v := &View{}
	from, to := s.clock.toTicks(q.From), s.clock.toTicks(q.To)
	grain := grainOf(to-min(from, to), q.Width)
	for _, lr := range q.Lanes {
		if uint64(lr.Lane) >= uint64(len(s.lanes)) {
			continue
		}
		l := s.lanes[lr.Lane]
		for r := max(0, lr.First); r < len(l.rows) && r-lr.First < lr.Count; r++ {
			m := merger{grain: grain}
			for _, c := range l.rows[r] {
				m.add(&bar{start: c.start, end: c.end, busy: c.end - c.start, fn: c.fn, calls: 1, flags: c.flags})
			}
			row := Row{Lane: lr.Lane, Row: r}
			for _, b := range m.out {
				if b.start < to && (b.end > from || b.start >= from) {
					row.Bars = append(row.Bars, s.clock.bar(&b))
				}
			}
			if len(row.Bars) > 0 {
				v.Rows = append(v.Rows, row)
			}
		}
		g := LaneGaps{Lane: lr.Lane}
		for _, gap := range l.gaps {
			if gap.Start < q.To && gap.End > q.From {
				g.Gaps = append(g.Gaps, gap)
			}
		}
		if len(g.Gaps) > 0 {
			v.Gaps = append(v.Gaps, g)
		}
	}
	return v, ctx.Err()
}

func (c *clock) bar(b *bar) Bar {
	start := c.toNS(b.start)
	out := Bar{Start: start, Duration: c.toNS(b.end) - start, Func: b.fn, Calls: b.calls, Flags: b.flags}
	out.Busy = min(out.Duration, c.toNS(b.busy))
	if b.calls == 1 {
		out.Busy = out.Duration
	}
	return out
}

// Overview sums up the recording in so many columns.
func (t *Timeline) Overview(ctx context.Context, width int) (*Overview, error) {
	s := t.live.Load()
	width = max(1, min(width, 1<<14))
	o := &Overview{Busy: make([]uint64, width)}
	column := max(1, (s.end+uint64(width)-1)/uint64(width))
	for _, l := range s.lanes {
		if len(l.rows) > 0 {
			for _, c := range l.rows[0] {
				start, end := s.clock.toNS(c.start), s.clock.toNS(c.end)
				for start < end {
					i := start / column
					stop := min(end, (i+1)*column)
					if i < uint64(width) {
						o.Busy[i] += stop - start
					}
					start = stop
				}
			}
		}
		o.Gaps = append(o.Gaps, l.gaps...)
	}
	slices.SortFunc(o.Gaps, func(a, b Gap) int { return int(max(-1, min(1, int64(a.Start)-int64(b.Start)))) })
	return o, ctx.Err()
}

// CallAt finds the call of a row that a time is in.
func (t *Timeline) CallAt(ctx context.Context, lane uint32, row int, at uint64) (Found, bool, error) {
	s := t.live.Load()
	if uint64(lane) >= uint64(len(s.lanes)) || row < 0 || row >= len(s.lanes[lane].rows) {
		return Found{}, false, ctx.Err()
	}
	list := s.lanes[lane].rows[row]
	i := sort.Search(len(list), func(i int) bool { return s.clock.toNS(list[i].start) > at }) - 1
	if i < 0 {
		return Found{}, false, ctx.Err()
	}
	if start := s.clock.toNS(list[i].start); start != at && s.clock.toNS(list[i].end) <= at {
		return Found{}, false, ctx.Err()
	}
	return s.found(s.lanes[lane], row, &list[i]), true, ctx.Err()
}

func (s *snapshot) found(l *lane, row int, c *call) Found {
	f := s.plain(l, row, c)
	for r := row - f.Depth; r < row; r++ {
		list := l.rows[r]
		if i := sort.Search(len(list), func(i int) bool { return list[i].start > c.start }) - 1; i >= 0 {
			f.Callers = append(f.Callers, s.plain(l, r, &list[i]))
		}
	}
	return f
}

func (s *snapshot) plain(l *lane, row int, c *call) Found {
	f := Found{Lane: l.ID, Row: row, Func: c.fn, Start: s.clock.toNS(c.start), Flags: c.flags, Depth: row}
	f.Duration = s.clock.toNS(c.end) - f.Start
	f.Self = f.Duration - min(f.Duration, s.clock.toNS(c.inside))
	for _, st := range l.stacks {
		if f.Depth < len(st) {
			break
		}
		f.Depth -= len(st)
		f.Stack++
	}
	return f
}

// Next finds the first call after a position (before it, if backwards) of a
// function that match wants. The order is that of starts, then of lanes, then of
// rows. To go on, pass the position of the call that was found.
func (t *Timeline) Next(ctx context.Context, match func(fn uint32) bool, from Position, backwards bool) (Found, bool, error) {
	s := t.live.Load()
	var best *call
	var at Position
	var in *lane
	for _, l := range s.lanes {
		for r, list := range l.rows {
			for i := range list {
				c := &list[i]
				p := Position{Lane: l.ID, Row: r, At: s.clock.toNS(c.start)}
				if !match(c.fn) || comparePositions(p, from) == 0 || comparePositions(p, from) < 0 != backwards {
					continue
				}
				if best == nil || comparePositions(p, at) < 0 != backwards {
					best, at, in = c, p, l
				}
			}
		}
	}
	if best == nil {
		return Found{}, false, ctx.Err()
	}
	return s.found(in, at.Row, best), true, ctx.Err()
}

func comparePositions(a, b Position) int {
	switch {
	case a.At != b.At:
		return compare(a.At, b.At)
	case a.Lane != b.Lane:
		return compare(uint64(a.Lane), uint64(b.Lane))
	}
	return compare(uint64(a.Row), uint64(b.Row))
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (t *Timeline) Replay(ctx context.Context, lanes []uint32, from, to uint64, v Visitor) error {
	s := t.live.Load()
	if lanes == nil {
		for i := range s.lanes {
			lanes = append(lanes, uint32(i))
		}
	}
	a, b := s.clock.toTicks(from), s.clock.toTicks(to)
	if to > s.end {
		b = 1 << 63
	}
	for _, lane := range lanes {
		l := s.lanes[lane]
		var list []*reel.Call
		for st, rows := range l.stacks {
			for depth, row := range rows {
				for _, c := range row {
					if c.start < b && (c.end > a || c.start >= a) {
						list = append(list, &reel.Call{Func: c.fn, Depth: depth, Stack: st, Start: c.start + s.clock.first, End: c.end + s.clock.first, Inside: c.inside, Flags: c.flags})
					}
				}
			}
		}
		slices.SortStableFunc(list, func(a, b *reel.Call) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Stack, b.Stack), cmp.Compare(a.Depth, b.Depth))
		})
		open := map[int][]*reel.Call{}
		leave := func(c *reel.Call) bool {
			o := open[c.Stack]
			for len(o) > c.Depth {
				if !v.Leave(lane, o[len(o)-1]) {
					return false
				}
				o = o[:len(o)-1]
			}
			open[c.Stack] = o
			return true
		}
		for _, c := range list {
			if !leave(c) {
				return nil
			}
			e := *c
			e.End = 0
			v.Enter(lane, &e)
			open[c.Stack] = append(open[c.Stack], c)
		}
		for st := range open {
			if !leave(&reel.Call{Stack: st}) {
				return nil
			}
		}
	}
	return ctx.Err()
}
