//go:build !arm64

package unwind

// stripHere is strip: this processor doesn't sign pointers.
func stripHere(strip uint64) uint64 { return strip }
