package madereel

import (
	"math/rand/v2"

	"github.com/callreel/callreel/reel"
)

// SchedWords are at least n words of the scheduler on a thread from a tick on: it runs for a while and waits, now and then is preempted, has
// page faults, or words of it are lost. Long is about how many ticks it runs or waits at a time.
func SchedWords(rng *rand.Rand, n int, at uint64, long float64) []reel.SchedEvent {
	out := make([]reel.SchedEvent, 0, n+4)
	add := func(e reel.SchedEvent, most float64) {
		at += uint64(rng.ExpFloat64() * most)
		e.Time = at
		out = append(out, e)
	}
	for len(out) < n {
		add(reel.SchedEvent{Kind: reel.SchedIn, CPU: int32(rng.IntN(8))}, long/50)
		for rng.IntN(16) == 0 {
			kind := reel.SchedMinorFault
			if rng.IntN(4) == 0 {
				kind = reel.SchedMajorFault
			}
			add(reel.SchedEvent{Kind: kind, Address: 0x7f00_0000_0000 + uint64(rng.IntN(1<<20))}, long/10)
		}
		switch rng.IntN(100) {
		case 0:
			add(reel.SchedEvent{Kind: reel.SchedLost}, 10*long)
			continue
		case 1, 2, 3, 4, 5, 6, 7:
			add(reel.SchedEvent{Kind: reel.SchedPreempted}, 3*long)
			continue
		case 8, 9:
			add(reel.SchedEvent{Kind: reel.SchedUninterruptible}, long)
		default:
			add(reel.SchedEvent{Kind: reel.SchedBlocked}, long)
		}
		add(reel.SchedEvent{Kind: reel.SchedWoken, Waker: [...]int32{reel.WakerKernel, 4711, 4712}[rng.IntN(3)]}, long)
	}
	return out
}
