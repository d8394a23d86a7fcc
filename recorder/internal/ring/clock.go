//go:build amd64 || arm64

package ring

import "github.com/callreel/callreel/internal/ticks"

// Ticks reads the clock that stubs read: the time-stamp counter of x86-64, the virtual counter of AArch64 (CNTVCT_EL0).
func Ticks() uint64 { return ticks.Now() }
