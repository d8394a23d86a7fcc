package reel

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// TickClock converts ticks of the time-stamp counter to wall time: a line from
// each clock pair to the next. It never runs backward.
type TickClock struct {
	points []ClockPair
	// ticks and ns are the rate that durations and times outside the points go
	// by: so many ticks take so many nanoseconds.
	ticks, ns uint64
}

// minSpan is the shortest time between the first and the last clock pair, in
// nanoseconds, from which a rate is taken. Reading a pair is uncertain by about
// a microsecond, so that a shorter one would be worse than the nominal rate.
const minSpan = 100_000_000

func newTickClock(perSecond uint64, pairs []ClockPair) *TickClock {
	if perSecond == 0 {
		perSecond = 1e9
	}
	c := &TickClock{ticks: perSecond, ns: 1e9}
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, func(a, b ClockPair) int { return cmp.Compare(a.Tick, b.Tick) })
	for _, p := range sorted {
		n := len(c.points)
		if n == 0 || p.Tick > c.points[n-1].Tick && p.UnixNS > c.points[n-1].UnixNS {
			c.points = append(c.points, p)
		}
	}
	if n := len(c.points); n > 1 {
		first, last := c.points[0], c.points[n-1]
		if span := uint64(last.UnixNS - first.UnixNS); span >= minSpan {
			c.ticks, c.ns = last.Tick-first.Tick, span
		}
	}
	return c
}

// UnixNS converts a tick to nanoseconds since 1970 UTC. Without any clock pair
// the time starts with tick 0.
func (c *TickClock) UnixNS(tick uint64) int64 {
	n := len(c.points)
	if n == 0 {
		return clampNS(c.Nanoseconds(tick))
	}
	if first := c.points[0]; tick < first.Tick {
		return saturatingSub(first.UnixNS, c.Nanoseconds(first.Tick-tick))
	}
	last := c.points[n-1]
	if tick >= last.Tick {
		return saturatingAdd(last.UnixNS, c.Nanoseconds(tick-last.Tick))
	}
	i := sort.Search(n, func(i int) bool { return c.points[i].Tick > tick })
	a, b := c.points[i-1], c.points[i]
	return a.UnixNS + int64(mulDiv(tick-a.Tick, uint64(b.UnixNS-a.UnixNS), b.Tick-a.Tick))
}

// Nanoseconds converts a duration in ticks, by the mean rate of the recording.
func (c *TickClock) Nanoseconds(ticks uint64) uint64 { return mulDiv(ticks, c.ns, c.ticks) }

// mulDiv is a*b/d, or the largest number if that does not fit.
func mulDiv(a, b, d uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= d {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, d)
	return q
}

func clampNS(ns uint64) int64 { return int64(min(ns, math.MaxInt64)) }

func saturatingAdd(base int64, d uint64) int64 {
	if sum := base + clampNS(d); sum >= base {
		return sum
	}
	return math.MaxInt64
}

func saturatingSub(base int64, d uint64) int64 {
	if diff := base - clampNS(d); diff <= base {
		return diff
	}
	return math.MinInt64
}

// Rate is the mean rate of the recording: so many ticks take so many nanoseconds. Neither is 0.
func (c *TickClock) Rate() (ticks, nanoseconds uint64) { return c.ticks, c.ns }
