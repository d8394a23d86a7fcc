package sched

import (
	"errors"
	"math"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/ticks"
)

// pair is one instant on both clocks: the kernel's, in which its events are told, and the processor's.
type pair struct {
	ns, tick uint64
}

// clock turns times of a clock of the kernel's into ticks. Between two pairs it is a line; so what the kernel does to its
// clock (NTP turns CLOCK_MONOTONIC faster or slower) is off by what its rate changes within one drain, and never adds up.
type clock struct {
	id       int32 // CLOCK_MONOTONIC or CLOCK_MONOTONIC_RAW
	from, to pair
	rate     float64 // ticks per nanosecond between the two
	before   []pair  // earlier pairs up to from, as far back as events are moved
}

// kept is from when pairs are kept, in nanoseconds before the last: what is told is held back by late, and moved by as much.
const kept = 4 * latest

// keptMost is about how many: who drains more often than each half of a millisecond has rougher lines behind.
const keptMost = 64

func readPair(id int32) (pair, error) {
	var err error
	tick, ts := ticks.Beside(func() (ts unix.Timespec) {
		err = errors.Join(err, unix.ClockGettime(id, &ts))
		return ts
	})
	return pair{ns: uint64(ts.Nano()), tick: tick}, err
}

// start takes the first pair; the rate is not known before advance.
func (c *clock) start() error {
	p, err := readPair(c.id)
	c.from, c.to = p, p
	return err
}

// advance takes another pair: what lies before it can be turned into ticks.
func (c *clock) advance() error {
	p, err := readPair(c.id)
	if err != nil {
		return err
	}
	if p.ns <= c.to.ns || p.tick <= c.to.tick {
		return nil // no time has passed
	}
	c.from, c.to = c.to, p
	c.keep()
	c.rate = float64(c.to.tick-c.from.tick) / float64(c.to.ns-c.from.ns)
	return nil
}

// keep remembers from, and forgets what is too long ago.
func (c *clock) keep() {
	if n := len(c.before); n > 1 && c.from.ns-c.before[n-2].ns < kept/keptMost {
		c.before[n-1] = c.from
	} else {
		c.before = append(c.before, c.from)
	}
	old := 0
	for old < len(c.before)-1 && c.before[old+1].ns+kept < c.to.ns {
		old++
	}
	c.before = append(c.before[:0], c.before[old:]...)
}

// ticks turns a time into ticks. Times before the first pair that is kept are few: they were late.
func (c *clock) ticks(ns uint64) uint64 {
	if k := len(c.before) - 2; ns < c.from.ns && k >= 0 {
		for k > 0 && ns < c.before[k].ns {
			k--
		}
		from, to := c.before[k], c.before[k+1]
		return from.on(ns, float64(to.tick-from.tick)/float64(to.ns-from.ns))
	}
	return c.from.on(ns, c.rate)
}

// on is the tick of a time on a line through the pair, with rate ticks a nanosecond.
func (p pair) on(ns uint64, rate float64) uint64 {
	return uint64(int64(p.tick) + int64(math.Round(float64(int64(ns-p.ns))*rate)))
}
