package markindex

import (
	"math"
	"math/bits"
	"slices"
	"sort"
)

// Flags of spans.
type Flags uint8

const (
	// Unstarted says that a span's beginning isn't in the reel, Unfinished that its end isn't.
	Unstarted Flags = 1 << iota
	Unfinished
	// Several says that a bar is of spans that lie over each other: more than a row can show.
	Several

	titleBits = 24
	titleMask = 1<<titleBits - 1
)

// row is spans of which none overlaps another, in order of time. Times are ticks.
type row struct {
	start, end []uint64
	what       []uint32 // title, and flags above
	// thread began it: of goroutines, and of asynchronous spans, which also have an ID.
	thread []uint32
	id     []uint64
	// count is of rows that have all that is left: how many spans each stretch is of.
	count  []uint32
	levels []rowLevel
}

// rowLevel sums up whole groups of spans, each of which is levelSpans times as many as one of the level below.
type rowLevel struct {
	longest, gap, busy []uint64
	what               []uint32 // of the longest
	count              []uint32 // nil: as many as the spans
}

// Each span in 64 has one more entry in the first level, and so on: about half a byte a span.
const (
	levelShift = 6
	levelSpans = 1 << levelShift
)

func (r *row) bytes() (n uint64) {
	n = uint64(8*(cap(r.start)+cap(r.end)+cap(r.id)) + 4*(cap(r.what)+cap(r.thread)+cap(r.count)))
	for i := range r.levels {
		l := &r.levels[i]
		n += uint64(8*(cap(l.longest)+cap(l.gap)+cap(l.busy)) + 4*(cap(l.what)+cap(l.count)))
	}
	return n + 200
}

func (r *row) add(start, end uint64, title uint32, flags Flags) {
	r.start, r.end = append(r.start, start), append(r.end, end)
	r.what = append(r.what, title|uint32(flags)<<titleBits)
}

// last is where the last span ends.
func (r *row) last() uint64 {
	if n := len(r.end); n > 0 {
		return r.end[n-1]
	}
	return 0
}

// unite makes stretches of spans that overlap: for a row that has all that is left, in any order.
func (r *row) unite() {
	order := make([]int32, len(r.start))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return compare(r.start[a], r.start[b]) })
	var out row
	longest := uint64(0)
	for _, i := range order {
		start, end, title := r.start[i], r.end[i], r.what[i]&titleMask
		n := len(out.start) - 1
		if n < 0 || start >= out.end[n] {
			out.add(start, end, title, Several)
			out.count = append(out.count, 1)
			longest = end - start
			continue
		}
		out.end[n] = max(out.end[n], end)
		out.count[n] += min(1, math.MaxUint32-out.count[n])
		if end-start > longest {
			longest = end - start
			out.what[n] = title | uint32(Several)<<titleBits
		}
	}
	*r = out
}

// finish makes the levels.
func (r *row) finish() {
	r.start, r.end, r.what = slices.Clip(r.start), slices.Clip(r.end), slices.Clip(r.what)
	r.thread, r.id, r.count, r.levels = slices.Clip(r.thread), slices.Clip(r.id), slices.Clip(r.count), nil
	for n := len(r.start) >> levelShift; n > 0; n >>= levelShift {
		l := rowLevel{longest: make([]uint64, n), gap: make([]uint64, n), busy: make([]uint64, n), what: make([]uint32, n)}
		if r.count != nil {
			l.count = make([]uint32, n)
		}
		for i := range n {
			r.sum(&l, i)
		}
		r.levels = append(r.levels, l)
	}
}

// sum makes an entry of the level above all that there are.
func (r *row) sum(l *rowLevel, i int) {
	most := uint64(0)
	for k := i << levelShift; k < (i+1)<<levelShift; k++ {
		var longest, busy, gap uint64
		what, count, first := uint32(0), uint32(1), k
		if n := len(r.levels); n > 0 {
			b := &r.levels[n-1]
			longest, busy, gap, what = b.longest[k], b.busy[k], b.gap[k], b.what[k]
			first = k << (levelShift * n)
			if b.count != nil {
				count = b.count[k]
			}
		} else {
			longest = r.end[k] - r.start[k]
			busy, what = longest, r.what[k]
			if r.count != nil {
				count = r.count[k]
			}
		}
		if k > i<<levelShift {
			gap = max(gap, r.start[first]-r.end[first-1])
		}
		if k == i<<levelShift || longest > most {
			most, l.what[i] = longest, what
		}
		l.longest[i], l.gap[i] = max(l.longest[i], longest), max(l.gap[i], gap)
		l.busy[i] += busy
		if l.count != nil {
			l.count[i] += min(count, math.MaxUint32-l.count[i])
		}
	}
}

// Bar is a span, or several that are each narrower than a pixel and whose gaps are. Times are ticks.
type Bar struct {
	Start, End uint64
	// Busy is the time in spans, End-Start for one.
	Busy uint64
	// Title is that of the longest.
	Title uint32
	Count uint32
	Flags Flags
}

// cellShift makes bars of spans that begin in the same 16 pixels, on a grid from tick 0: which are in one doesn't depend on the range.
const cellShift = 4

// bars are what is to be seen of a row from one tick to another, a pixel being 1<<grain ticks.
func (r *row) bars(from, to uint64, grain uint) []Bar {
	n := len(r.start)
	cell := grain + cellShift
	low := (from - min(from, 1<<grain)) >> cell << cell
	high := uint64(math.MaxUint64)
	if to>>cell < math.MaxUint64>>cell {
		high = (to>>cell + 1) << cell
	}
	pixel := uint64(1) << grain
	i := sort.Search(n, func(i int) bool { return r.end[i] >= low })
	var out []Bar
	var b Bar // being merged
	longest := uint64(0)
	flush := func() {
		if b.Count > 0 && b.Start < to && (b.End > from || b.Start >= from) {
			out = append(out, b)
		}
		b = Bar{}
	}
	for i < n && r.start[i] < high {
		level, size := -1, 1
		for level+1 < len(r.levels) && i&(size<<levelShift-1) == 0 && i>>(levelShift*(level+2)) < len(r.levels[level+1].longest) {
			l, k := &r.levels[level+1], i>>(levelShift*(level+2))
			if l.longest[k] >= pixel || l.gap[k] >= pixel || r.start[i+size<<levelShift-1]>>cell != r.start[i]>>cell {
				break
			}
			level, size = level+1, size<<levelShift
		}
		start, end := r.start[i], r.end[i+size-1]
		one, busy, what, count := end-start, end-start, r.what[i], uint32(1)
		if level >= 0 {
			l, k := &r.levels[level], i>>(levelShift*(level+1))
			one, busy, what, count = l.longest[k], l.busy[k], l.what[k], uint32(size)
			if l.count != nil {
				count = l.count[k]
			}
		} else if r.count != nil {
			count = r.count[i]
		}
		i += size
		if one >= pixel || b.Count == 0 || b.Start>>cell != start>>cell || start-b.End >= pixel {
			flush()
			b, longest = Bar{start, end, busy, what & titleMask, count, Flags(what >> titleBits)}, one
			if one >= pixel {
				flush()
			}
			continue
		}
		b.End, b.Busy, b.Flags = end, b.Busy+busy, b.Flags|Flags(what>>titleBits)
		b.Count += min(count, math.MaxUint32-b.Count)
		if one > longest {
			longest, b.Title = one, what&titleMask
		}
	}
	flush()
	return out
}

// at is the span that a tick is in, or that is nearest to it within a distance; -1 for none.
func (r *row) at(tick, near uint64) int {
	n := len(r.start)
	i := sort.Search(n, func(i int) bool { return r.end[i] > tick })
	best, away := -1, uint64(0)
	for _, k := range [...]int{i - 1, i, i + 1} {
		if k < 0 || k >= n {
			continue
		}
		off := uint64(0)
		switch {
		case tick < r.start[k]:
			off = r.start[k] - tick
		case tick > r.end[k]:
			off = tick - r.end[k]
		}
		if off <= near && (best < 0 || off < away || off == away && r.start[k] == tick) {
			best, away = k, off
		}
	}
	return best
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

// Grain is that at which a screen so many pixels wide shows so many ticks: a pixel is the nearest power of two of ticks.
func Grain(ticks uint64, width int) uint {
	const most = 58 // shifts by some more are still shifts
	pixel := ticks / uint64(max(1, width))
	grain := uint(max(1, bits.Len64(pixel)) - 1)
	if float64(pixel) > math.Sqrt2*float64(uint64(1)<<grain) {
		grain++
	}
	return min(grain, most)
}
