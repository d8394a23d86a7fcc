package unwind

import (
	"math/rand/v2"
	"testing"
)

// A walk stays warm when its addresses do not drive each other out, wherever the loader has
// put the program.
func TestAddressesOfAStackStayKnown(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		c := new(cache)
		base := uint64(0x5500_0000_0000) + random.Uint64N(1<<36)<<12
		var keys []uint64
		for range 70 {
			key := AMD64.keyOf(base+random.Uint64N(1<<20), false)
			if _, known := c.slot(key); !known {
				c[c.slotFor(key)] = entry{key: key, kind: kindSP}
			}
			keys = append(keys, key)
		}
		for _, key := range keys {
			if at, known := c.slot(key); !known || c[at].key != key {
				t.Fatalf("program at %#x: %#x was forgotten", base, key)
			}
		}
	}
}

func TestFullPlaceMakesRoom(t *testing.T) {
	c := new(cache)
	var keys []uint64
	for key := uint64(1); len(keys) < 2*cacheWays; key++ {
		if slotsOf(key) == slotsOf(1) {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		at := c.slotFor(key)
		if first := slotsOf(key); at < first || at >= first+cacheWays {
			t.Fatalf("%#x is to go to slot %d, where it is not looked for: %d to %d", key, at, first, first+cacheWays-1)
		}
		c[at] = entry{key: key, kind: kindSP}
		if _, known := c.slot(key); !known {
			t.Fatalf("%#x is not found", key)
		}
	}
}
