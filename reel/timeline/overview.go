package timeline

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// maxColumns is how many columns the overview is kept in.
const maxColumns = 1 << 12

// columns sums up busy time in columns of 1<<shift ticks, from a time on.
type columns struct {
	from  uint64
	shift uint
	busy  []uint64
	whole []int64 // how many more calls than in the column before cover one wholly
}

func newColumns(from, end uint64) *columns {
	c := &columns{from: from, busy: make([]uint64, maxColumns), whole: make([]int64, maxColumns+1)}
	c.shift = shiftFor(end - min(from, end))
	return c
}

// shiftFor is the width of columns that reach to end.
func shiftFor(end uint64) uint { return uint(max(0, bits.Len64(end)-bits.Len(maxColumns-1))) }

func (c *columns) clone() *columns {
	return &columns{from: c.from, shift: c.shift, busy: slices.Clone(c.busy), whole: slices.Clone(c.whole)}
}

// copy makes the columns those of another.
func (c *columns) copy(o *columns) {
	c.from, c.shift = o.from, o.shift
	copy(c.busy, o.busy)
	copy(c.whole, o.whole)
}

// add adds a call at depth 0; it is cut at the first and the last column.
func (c *columns) add(start, end uint64) {
	if end < c.from {
		return
	}
	start, end = start-min(start, c.from), end-c.from
	a, b := start>>c.shift, end>>c.shift
	if a == b && a < maxColumns {
		c.busy[a] += end - start
		return
	}
	if a >= maxColumns {
		return
	}
	c.busy[a] += (a+1)<<c.shift - start
	if b < maxColumns {
		c.busy[b] += end - b<<c.shift
	} else {
		b = maxColumns
	}
	c.whole[a+1]++
	c.whole[b]--
}

// merge adds what another one of the same width holds.
func (c *columns) merge(o *columns) {
	for i := range o.busy {
		c.busy[i] += o.busy[i]
	}
	for i := range o.whole {
		c.whole[i] += o.whole[i]
	}
}

// flatten turns whole columns into busy time.
func (c *columns) flatten() {
	n := int64(0)
	for i := range c.busy {
		n += c.whole[i]
		c.busy[i] += uint64(max(0, n)) << c.shift
	}
	clear(c.whole)
}

// widen makes the columns wide enough to reach to end.
func (c *columns) widen(end uint64) {
	c.flatten()
	for shift := shiftFor(end - min(end, c.from)); c.shift < shift; c.shift++ {
		for i := range c.busy {
			v := c.busy[i]
			c.busy[i] = 0
			c.busy[i/2] += v
		}
	}
}

// Overview sums up the recording in so many columns, at most 16384.
func (t *Timeline) Overview(ctx context.Context, width int) (*Overview, error) {
	s := t.live.Load()
	width = max(1, min(width, 1<<14))
	c := s.done.clone()
	for _, l := range s.lanes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, x := range l.tail {
			c.add(x.start, x.end)
		}
	}
	c.flatten()
	o := &Overview{Busy: make([]uint64, width), From: s.clock.toNS(c.from)}
	end := max(1, s.end-min(s.end, c.from))
	for i, busy := range c.busy {
		// A column's time goes to the columns of the answer in proportion.
		a := float64(uint64(i)<<c.shift) / float64(end) * float64(width)
		b := min(float64(width), float64((uint64(i)+1)<<c.shift)/float64(end)*float64(width))
		if a >= float64(width) {
			break
		}
		for k := int(a); k < width && float64(k) < b; k++ {
			part := min(b, float64(k+1)) - max(a, float64(k))
			o.Busy[k] += uint64(float64(s.clock.toNS(busy)) * part / (b - a))
		}
	}
	o.Gaps = s.gapsWithin(s.lanes, 0, s.end, end/uint64(width))
	return o, ctx.Err()
}

// gapsWithin are the gaps of lanes that reach into a range, those nearer to each
// other than apart merged.
func (s *snapshot) gapsWithin(lanes []*lane, from, to, apart uint64) []Gap {
	var list []gap
	for _, l := range lanes {
		i, _ := slices.BinarySearchFunc(l.gaps, from, func(g gap, at uint64) int { return cmp.Compare(g.end, at) })
		for ; i < len(l.gaps) && l.gaps[i].start <= to; i++ {
			if n := len(list); n > 0 && len(lanes) == 1 && l.gaps[i].start-min(list[n-1].end, l.gaps[i].start) < apart {
				list[n-1].end = max(list[n-1].end, l.gaps[i].end)
				list[n-1].events += l.gaps[i].events
				continue
			}
			list = append(list, l.gaps[i])
		}
	}
	return s.mergedGaps(list, apart)
}

func (s *snapshot) mergedGaps(list []gap, apart uint64) []Gap {
	slices.SortFunc(list, func(a, b gap) int { return cmp.Compare(a.start, b.start) })
	var out []gap
	for _, g := range list {
		if n := len(out); n > 0 && g.start-min(out[n-1].end, g.start) < apart {
			out[n-1].end = max(out[n-1].end, g.end)
			out[n-1].events += g.events
			continue
		}
		out = append(out, g)
	}
	var gaps []Gap
	for _, g := range out {
		gaps = append(gaps, Gap{Start: s.clock.toNS(g.start), End: s.clock.toNS(g.end), Events: g.events})
	}
	return gaps
}
