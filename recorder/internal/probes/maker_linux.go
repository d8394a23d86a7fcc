package probes

import (
	"math/bits"
	"sync"

	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/target"
)

// Maker makes probes when they are asked for. No thread waits for that, so it is done between rounds through the rings.
type Maker struct {
	target *target.Target
	mu     sync.Mutex       // guards what follows; that of the switches' states may be taken while it is held
	ranges []target.IDRange // whose arenas have their code
	known  []uint64         // a bit for each function whose probe is made; empty when there is nothing to make
	seen   uint64           // how often probes had been asked for
	made   int
	off    func(slot *stub.Slot, ranges []target.IDRange) bool // whether what a slot would change is off
}

// NewMaker returns what makes the probes of a recording; it does nothing for a recording in which all exist.
func NewMaker(s *target.Target) *Maker {
	c := &Maker{target: s, off: func(*stub.Slot, []target.IDRange) bool { return false }}
	if s.Runtime.Lazy {
		c.Add(s.Ranges)
	}
	return c
}

// Add lets probes of functions be made, whose IDs are higher than those of all before. For libraries that come later it is to be
// called before their gates are opened.
func (c *Maker) Add(ranges []target.IDRange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ranges = append(c.ranges, ranges...)
	for i := range ranges {
		last := ranges[i].First + ranges[i].Count - 1
		c.known = append(c.known, make([]uint64, max(int(last/64)+1-len(c.known), 0))...)
	}
}

// Round makes the probes that have been asked for since the last, and says whether any have.
func (c *Maker) Round() bool {
	// Before the bits are looked at, which are set before it changes.
	asked := c.target.Memory.Asked()
	if asked == c.seen {
		return false
	}
	c.seen = asked
	c.MakeAll()
	return true
}

// MakeAll makes all probes that have been asked for. The target may have asked for whatever it likes.
func (c *Maker) MakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, known := range c.known {
		for set := c.target.Memory.AskedWord(i) &^ known; set != 0; set &= set - 1 {
			slot, a := target.SlotOf(c.ranges, uint32(64*i+bits.TrailingZeros64(set)))
			if slot == nil {
				continue
			}
			if !c.off(slot, c.ranges) && c.target.Exchange(a, slot.At, func(uint64) uint64 { return slot.Word }) != nil {
				continue // the process has ended: until its probe is made a function is recorded all the same
			}
			c.known[i] |= set & -set
			c.made++
		}
	}
}

// Made is how many probes have been made.
func (c *Maker) Made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

// setOff says of what it is asked whether a slot is not to be exchanged.
func (c *Maker) setOff(off func(slot *stub.Slot, ranges []target.IDRange) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = off
}

// isMade says whether a function's probe is made. The caller holds mu.
func (c *Maker) isMade(id uint32) bool {
	return int(id/64) < len(c.known) && c.known[id/64]>>(id%64)&1 != 0
}
