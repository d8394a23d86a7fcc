package recorder_test

import (
	"slices"
	"sync"

	"github.com/callreel/callreel/recorder/internal/ring"
)

// clockStep is by about how many ticks the clock goes on at a time: few on most machines, 26 on a virtual one whose host's counter is scaled up.
// It is the widest gap between times that work of all lengths takes.
var clockStep = sync.OnceValue(func() (step uint64) {
	const longest, times, often = 64, 200, 20
	seen := map[uint64]int{}
	for i := range longest * times {
		before := ring.Ticks()
		for k := range i % longest {
			sink += k
		}
		seen[ring.Ticks()-before]++
	}
	var common []uint64
	for took, n := range seen {
		if n >= often {
			common = append(common, took)
		}
	}
	slices.Sort(common)
	for i := 1; i < len(common); i++ {
		step = max(step, common[i]-common[i-1])
	}
	return step
})

var sink int

// timeless is how many of n calls that take some nanoseconds may have taken none, by the clock, where --min leaves those out.
func timeless(flags []string, n int64) int64 {
	const coarse = 16
	if !slices.Contains(flags, "--min") || clockStep() < coarse {
		return 0
	}
	return n / 2
}
