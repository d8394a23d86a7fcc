package markindex

import (
	"math"
	"slices"
	"sort"
)

// graph is a counter's values in order of time. Each holds until the next one.
type graph struct {
	at        []uint64
	value     []float64
	low, high [][]float64 // by level, of whole groups
}

func (g *graph) bytes() uint64 {
	n := 8 * (cap(g.at) + cap(g.value))
	for i := range g.low {
		n += 8 * (cap(g.low[i]) + cap(g.high[i]))
	}
	return uint64(n)
}

func (g *graph) finish() {
	g.at, g.value = slices.Clip(g.at), slices.Clip(g.value)
	low, high := g.value, g.value
	for n := len(low) >> levelShift; n > 0; n >>= levelShift {
		a, b := make([]float64, n), make([]float64, n)
		for i := range n {
			a[i], b[i] = slices.Min(low[i<<levelShift:(i+1)<<levelShift]), slices.Max(high[i<<levelShift:(i+1)<<levelShift])
		}
		g.low, g.high = append(g.low, a), append(g.high, b)
		low, high = a, b
	}
}

// Column is what a counter did in about a pixel: from Start on it was between Min and Max, and Last then. Of a single value they are the same.
type Column struct {
	Start          uint64 // ticks
	Min, Max, Last float64
	Count          uint64
}

// columns are a counter's values from one tick to another, a pixel being 1<<grain ticks, with the one that holds when they begin.
func (g *graph) columns(from, to uint64, grain uint) []Column {
	n := len(g.at)
	i := sort.Search(n, func(i int) bool { return g.at[i] > from })
	if i > 0 {
		i--
	}
	var out []Column
	for i < n && g.at[i] < to {
		cell := g.at[i] >> grain
		end := i + 1 + search(n-i-1, func(k int) bool { return g.at[i+1+k]>>grain > cell })
		c := Column{Start: g.at[i], Last: g.value[end-1], Count: uint64(end - i)}
		c.Min, c.Max = g.extremes(i, end)
		out = append(out, c)
		i = end
	}
	return out
}

// extremes are the least and the greatest of some values.
func (g *graph) extremes(i, end int) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for i < end {
		level, size := -1, 1
		for level+1 < len(g.low) && i&(size<<levelShift-1) == 0 && i+size<<levelShift <= end && i>>(levelShift*(level+2)) < len(g.low[level+1]) {
			level, size = level+1, size<<levelShift
		}
		if level < 0 {
			low, high = min(low, g.value[i]), max(high, g.value[i])
		} else {
			k := i >> (levelShift * (level + 1))
			low, high = min(low, g.low[level][k]), max(high, g.high[level][k])
		}
		i += size
	}
	return low, high
}

// search is sort.Search for what is as a rule near the beginning.
func search(n int, is func(int) bool) int {
	step := 1
	for step < n && !is(step-1) {
		step *= 2
	}
	from := step / 2
	return from + sort.Search(min(step, n)-from, func(i int) bool { return is(from + i) })
}

// points are instants in order of time.
type points struct {
	at   []uint64
	what []uint32 // titles; of steps the thread
	id   []uint32 // thread, of goroutines' instants
}

func (p *points) bytes() uint64 { return uint64(8*cap(p.at) + 4*(cap(p.what)+cap(p.id))) }

func (p *points) finish() {
	p.at, p.what, p.id = slices.Clip(p.at), slices.Clip(p.what), slices.Clip(p.id)
}

// Len is how many there are.
func (p *points) Len() int { return len(p.at) }

// ticks are what is to be seen of them: those in the same pixel are one.
func (p *points) ticks(from, to uint64, grain uint) []Bar {
	n := len(p.at)
	i := sort.Search(n, func(i int) bool { return p.at[i] >= from })
	var out []Bar
	for i < n && p.at[i] < to {
		cell := p.at[i] >> grain
		end := i + 1 + search(n-i-1, func(k int) bool { return p.at[i+1+k]>>grain > cell })
		out = append(out, Bar{Start: p.at[i], End: p.at[end-1], Title: p.what[i], Count: uint32(min(end-i, math.MaxUint32))})
		i = end
	}
	return out
}
