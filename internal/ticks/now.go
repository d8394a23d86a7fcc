//go:build amd64 || arm64

package ticks

// Now reads the time-stamp counter of x86-64, the virtual counter of AArch64 (CNTVCT_EL0).
func Now() uint64
