package timeline

import (
	"math"
	"math/bits"

	"github.com/callreel/callreel/reel"
)

// clock converts ticks from the recording's start to nanoseconds and back. The
// rate is one for the whole recording, so that durations add up.
type clock struct {
	first   uint64
	untimed bool
	whole   uint64 // nanoseconds a tick
	part    uint64 // and the fraction, in 2^-64
	ticks   uint64 // the same as ticks for ns
	ns      uint64
}

func newClock(f *reel.File) clock {
	if f.Header().Clock.Mode == reel.ClockNone {
		return clock{untimed: true, whole: 1, ticks: 1, ns: 1}
	}
	c := clock{first: f.FirstTick()}
	c.ticks, c.ns = f.Clock().Rate()
	c.whole = c.ns / c.ticks
	c.part, _ = bits.Div64(c.ns%c.ticks, 0, c.ticks)
	return c
}

// rel is the time from the recording's start, in ticks.
func (c *clock) rel(tick uint64) uint64 { return tick - min(tick, c.first) }

// toNS converts ticks from the start.
func (c *clock) toNS(rel uint64) uint64 {
	hi, _ := bits.Mul64(rel, c.part)
	if c.whole == 0 {
		return hi
	}
	over, lo := bits.Mul64(rel, c.whole)
	sum, carry := bits.Add64(lo, hi, 0)
	if over|carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// toTicks is the first tick that is at that many nanoseconds or later.
func (c *clock) toTicks(ns uint64) uint64 {
	low, high := c.atMost(ns), c.atMost(ns+min(1, math.MaxUint64-ns))
	high += min(1, math.MaxUint64-high)
	for low < high {
		if mid := low + (high-low)/2; c.toNS(mid) < ns {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// atMost is how many ticks fit into that many nanoseconds.
func (c *clock) atMost(ns uint64) uint64 {
	hi, lo := bits.Mul64(ns, c.ticks)
	if hi >= c.ns {
		return math.MaxUint64
	}
	t, _ := bits.Div64(hi, lo, c.ns)
	return t
}
