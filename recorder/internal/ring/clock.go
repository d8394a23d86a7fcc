//go:build amd64 || arm64

package ring

import (
	"time"

	"github.com/callreel/callreel/internal/ticks"
	"github.com/callreel/callreel/reel"
)

// Ticks reads the clock that stubs read: the time-stamp counter of x86-64, the virtual counter of AArch64 (CNTVCT_EL0).
func Ticks() uint64 { return ticks.Now() }

// ClockPair reads it and the time of day at one instant.
func ClockPair() reel.ClockPair {
	tick, at := ticks.Beside(time.Now)
	return reel.ClockPair{Tick: tick, UnixNS: at.UnixNano()}
}
