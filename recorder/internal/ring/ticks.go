package ring

import "time"

// TicksOf is a duration in ticks of the clock that stubs read.
func TicksOf(d time.Duration, ticksPerSecond uint64) uint64 {
	return uint64(d.Seconds() * float64(ticksPerSecond))
}
