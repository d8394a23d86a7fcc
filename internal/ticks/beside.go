package ticks

import "math"

// besides is how often Beside reads both clocks.
const besides = 8

// Beside reads this clock and another one at the same instant: both several times, of which that counts which took least. Who is
// interrupted between two clocks may be so for milliseconds; one that isn't is right within half of what reading takes.
func Beside[T any](read func() T) (tick uint64, other T) {
	least := uint64(math.MaxUint64)
	for range besides {
		before := Now()
		o := read()
		if d := Now() - before; d < least {
			least, tick, other = d, before+d/2, o
		}
	}
	return tick, other
}
