package markindex

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"sort"
)

// SpanSum sums up the spans of a title that are open in a range. Times are in ticks.
type SpanSum struct {
	Title uint32
	Async bool
	// Count has all that reach into the range, Complete those whose beginning and end are in the reel.
	Count, Complete uint64
	// Total is the time within the range; percentiles and Max are of the whole durations of complete ones.
	Total, P50, P99, Max uint64
}

// CounterSum sums up a counter in a range. Values counts those told in it; Min, Max, and First, which holds at its beginning, have that as well.
type CounterSum struct {
	Track                       int
	Values                      uint64
	Min, Max, First, Last, Mean float64 // Mean is over time
}

// InstantSum counts the instants of a title in a range.
type InstantSum struct {
	Title uint32
	Count uint64
}

// Table is what marks come to in a range.
type Table struct {
	Spans    []SpanSum // the longest Total first
	Counters []CounterSum
	Instants []InstantSum // the most first
}

type spanTally struct {
	SpanSum
	times durations
}

// Sum sums up what there is from one tick until another. Spans in rows that have all that is left are not in it: they are counted by no title.
func (x *Index) Sum(ctx context.Context, from, to uint64) (*Table, error) {
	out := &Table{}
	spans := [2]map[uint32]*spanTally{{}, {}}
	add := func(r *row, async bool) error {
		if r.count != nil {
			return nil
		}
		all := spans[0]
		if async {
			all = spans[1]
		}
		i := sort.Search(len(r.start), func(i int) bool { return r.end[i] >= from })
		for ; i < len(r.start) && r.start[i] < to; i++ {
			if i&0xffff == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			id := r.what[i] & titleMask
			t := all[id]
			if t == nil {
				t = &spanTally{SpanSum: SpanSum{Title: id, Async: async}}
				all[id] = t
			}
			t.Count++
			t.Total += min(r.end[i], to) - min(max(r.start[i], from), min(r.end[i], to))
			if r.what[i]>>titleBits == 0 {
				long := r.end[i] - r.start[i]
				t.Complete++
				t.Max = max(t.Max, long)
				t.times.add(long)
			}
		}
		return nil
	}
	instants := map[uint32]uint64{}
	for n, l := range x.order {
		if n&0xff == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for i := range l.rows {
			if err := add(&l.rows[i], false); err != nil {
				return nil, err
			}
		}
		p := &l.Instants
		i := sort.Search(len(p.at), func(i int) bool { return p.at[i] >= from })
		for ; i < len(p.at) && p.at[i] < to; i++ {
			instants[p.what[i]]++
		}
	}
	for i, t := range x.tracks {
		if t.Counter {
			if c, ok := t.graph.sum(from, to); ok {
				c.Track = i
				out.Counters = append(out.Counters, c)
			}
		}
		for k := range t.rows {
			if err := add(&t.rows[k], true); err != nil {
				return nil, err
			}
		}
	}
	for _, all := range spans {
		for _, t := range all {
			t.P50, t.P99 = min(t.times.percentile(50), t.Max), min(t.times.percentile(99), t.Max)
			out.Spans = append(out.Spans, t.SpanSum)
		}
	}
	for id, n := range instants {
		out.Instants = append(out.Instants, InstantSum{id, n})
	}
	slices.SortFunc(out.Spans, func(a, b SpanSum) int { return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Title, b.Title)) })
	slices.SortFunc(out.Instants, func(a, b InstantSum) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Title, b.Title)) })
	return out, nil
}

// sum sums up a counter; ok is false if it has no value by the end of the range.
func (g *graph) sum(from, to uint64) (c CounterSum, ok bool) {
	i := sort.Search(len(g.at), func(i int) bool { return g.at[i] >= from })
	end := sort.Search(len(g.at), func(i int) bool { return g.at[i] >= to })
	if end == 0 || from >= to {
		return c, false
	}
	c.Values = uint64(end - i)
	if i > 0 && (i == end || g.at[i] > from) {
		i-- // what holds when it begins
	}
	c.Min, c.Max = g.extremes(i, end)
	c.First, c.Last = g.value[i], g.value[end-1]
	area, whole := 0.0, 0.0
	for k := i; k < end; k++ {
		a, b := max(g.at[k], from), to
		if k+1 < end {
			b = max(a, g.at[k+1])
		}
		whole += float64(b - a)
		area += g.value[k] * float64(b-a)
	}
	c.Mean = c.Last
	if mean := area / whole; mean >= c.Min && mean <= c.Max { // the sum may be too large
		c.Mean = mean
	}
	return c, true
}

// Place says where a span is among those of its title.
type Place struct {
	// Count and Complete are as in SpanSum, of the whole recording.
	Count, Complete    uint64
	Total              uint64
	P50, P99, Max, Min uint64
	// Shorter is how many complete ones took less time.
	Shorter uint64
	// Buckets are how many took how long: that with i those below 1<<i ticks, and no less than half of that.
	Buckets [64]uint64
}

// Among is the place of a duration, in ticks, among the spans of a title.
func (x *Index) Among(ctx context.Context, title uint32, async bool, duration uint64) (p Place, err error) {
	var times durations
	add := func(r *row) {
		if r.count != nil {
			return
		}
		for i, w := range r.what {
			if w&titleMask != title {
				continue
			}
			long := r.end[i] - r.start[i]
			p.Count++
			p.Total += long
			if w>>titleBits != 0 {
				continue
			}
			if p.Complete == 0 || long < p.Min {
				p.Min = long
			}
			p.Complete++
			p.Max = max(p.Max, long)
			if long < duration {
				p.Shorter++
			}
			p.Buckets[min(bits.Len64(long), 63)]++
			times.add(long)
		}
	}
	if async {
		for _, t := range x.tracks {
			for i := range t.rows {
				add(&t.rows[i])
			}
		}
	} else {
		for n, l := range x.order {
			if n&0xff == 0 && ctx.Err() != nil {
				return p, ctx.Err()
			}
			for i := range l.rows {
				add(&l.rows[i])
			}
		}
	}
	p.P50, p.P99 = min(times.percentile(50), p.Max), min(times.percentile(99), p.Max)
	return p, ctx.Err()
}
