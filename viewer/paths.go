package viewer

import (
	"math/bits"
	"math/rand/v2"
)

// paths finds the nodes of a call tree by their parent and function. Each call of a replay asks it; it takes half the time of a
// map, most of which is waiting for memory.
type paths struct {
	slots []pathSlot // a power of two of them, at most half of them taken
	taken int
	mix   uint64 // random, so that no reel can choose where its paths come to lie
}

// pathSlot is free if its node is 0, which is nobody's child.
type pathSlot struct {
	parent   int32
	function uint32
	node     int32
}

const firstPaths = 1 << 10

func newPaths() *paths { return &paths{slots: make([]pathSlot, firstPaths), mix: rand.Uint64() | 1} }

// find returns where the path is, or is to be put by add.
func (p *paths) find(parent int32, function uint32) *pathSlot {
	// Multiply-shift hashing (Dietzfelbinger and others, 1997).
	at := (uint64(uint32(parent))<<32 | uint64(function)) * p.mix >> (64 - bits.TrailingZeros(uint(len(p.slots))))
	for {
		s := &p.slots[at&uint64(len(p.slots)-1)]
		if s.node == 0 || s.parent == parent && s.function == function {
			return s
		}
		at++
	}
}

// add puts a path where find has not found it.
func (p *paths) add(s *pathSlot, parent int32, function uint32, node int32) {
	*s = pathSlot{parent, function, node}
	if p.taken++; 2*p.taken < len(p.slots) {
		return
	}
	old := p.slots
	p.slots = make([]pathSlot, 2*len(old))
	for i := range old {
		if o := &old[i]; o.node != 0 {
			*p.find(o.parent, o.function) = *o
		}
	}
}
