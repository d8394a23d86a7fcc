package sched

import (
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
}

// pairReadings is how often both clocks are read for a pair. The one with the least time between the two readings of the
// counter counts: an interrupt in between cannot spoil all of them.
const pairReadings = 8

func readPair(id int32) (pair, error) {
	var best pair
	least := uint64(math.MaxUint64)
	for range pairReadings {
		var ts unix.Timespec
		before := ticks.Now()
		err := unix.ClockGettime(id, &ts)
		after := ticks.Now()
		if err != nil {
			return pair{}, err
		}
		if d := after - before; d < least {
			least, best = d, pair{ns: uint64(ts.Nano()), tick: before + d/2}
		}
	}
	return best, nil
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
	c.rate = float64(c.to.tick-c.from.tick) / float64(c.to.ns-c.from.ns)
	return nil
}

// ticks turns a time into ticks. Times before the last but one pair are few: they were late.
func (c *clock) ticks(ns uint64) uint64 {
	return uint64(int64(c.from.tick) + int64(math.Round(float64(int64(ns-c.from.ns))*c.rate)))
}
