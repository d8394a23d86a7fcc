package madereel

import (
	"math/rand/v2"

	"github.com/callreel/callreel/reel"
)

// Coroutines are at least n events of a thread whose coroutines take turns, their stacks of some size side by side; now and then an
// exception leaves calls. Functions have the IDs 1 to 10; 1 is around all other calls of a coroutine, and 2 is what it waits in.
func Coroutines(rng *rand.Rand, n, stacks int, size, start uint64) []reel.Event {
	var out []reel.Event
	now := start
	event := func(make func(time uint64, sp, id uint32) reel.Event, sp, id uint32) {
		now += uint64(rng.IntN(60))
		out = append(out, make(now, sp, id))
	}
	begun := make([]bool, stacks)
	sp := uint32(0)
	for len(out) < n {
		i := rng.IntN(stacks)
		sp = uint32(0x20000000 + uint64(i)*size)
		if !begun[i] {
			begun[i] = true
			event(reel.Entry, sp, 1)
		} else {
			event(reel.Exit, sp-64, 2)
		}
		for range rng.IntN(4) {
			depth := uint32(1 + rng.IntN(5))
			for d := range depth {
				event(reel.Entry, sp-64-64*d, 3+rng.Uint32N(8))
			}
			if rng.IntN(8) == 0 {
				continue // an exception, which is caught in 1
			}
			for d := depth; d > 0; d-- {
				event(reel.Exit, sp-64-64*(d-1), out[len(out)-1-2*int(depth-d)].ID())
			}
		}
		event(reel.Entry, sp-64, 2)
	}
	event(reel.Exit, sp-64, 2)
	event(reel.Exit, sp, 1)
	return out
}
