//go:build !amd64 && !arm64

package main

// keeps returns 2x+15.
//
//go:noinline
func keeps(x uint64) uint64 { return 2*x + 15 }

// keepAll calls keeps, and says whether it was right.
func keepAll() bool {
	for x := range uint64(50) {
		keepings.Add(1)
		if keeps(x) != 2*x+15 {
			return false
		}
	}
	return true
}
