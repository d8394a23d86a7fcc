package ring

import "math/bits"

// mostEnough bounds what Enough says.
const mostEnough = 1 << 50

// Enough is how many bytes of chunks would surely have had room for what a recording has dropped that had so many: a power of two. What
// was dropped would have waited beside all else, or each thread would have had a chunk of its own, whichever is more.
func Enough(had uint64, t Totals) uint64 {
	const call = 2 * EventSize
	enough := had + min(t.Dropped, mostEnough/call/2)*call*4/3 // a quarter is the reserve
	enough = max(enough, uint64(t.AtOnce)*SmallSize*8/3)       // and half of what is left are small chunks
	return min(uint64(1)<<bits.Len64(enough-1), mostEnough)
}
