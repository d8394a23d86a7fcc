package ring

import (
	"math/bits"
	"time"
)

// TicksOf is a duration in ticks of the clock that stubs read: as many as it takes at least. It is 0 for a negative one, and at most 1<<64-1.
func TicksOf(d time.Duration, ticksPerSecond uint64) uint64 {
	high, low := bits.Mul64(uint64(max(d, 0)), ticksPerSecond)
	if high >= uint64(time.Second) {
		return 1<<64 - 1
	}
	ticks, rest := bits.Div64(high, low, uint64(time.Second))
	if rest > 0 {
		ticks++
	}
	return ticks
}
