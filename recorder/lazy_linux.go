package recorder

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// compiler makes probes when they are asked for. No thread waits for that, so it is done in the rounds of the drain.
type compiler struct {
	memory *ring.Memory
	mu     sync.Mutex       // guards what follows
	ranges []target.IDRange // whose arenas have their code
	known  []uint64         // a bit for each function whose probe is made; empty when there is nothing to make
	seen   uint64           // how often probes had been asked for
	made   int
	// switches, if not nil, says which functions are off.
	switches *switches
}

// newCompiler begins to make probes; nothing is done for a recording in which all exist.
func newCompiler(s *target.Target) *compiler {
	c := &compiler{memory: s.Memory}
	if s.Runtime.Lazy {
		c.add(s.Ranges)
	}
	return c
}

// add lets probes of functions be made, whose IDs are higher than those of all before. For libraries that come later it is to be
// called before their gates are opened.
func (c *compiler) add(ranges []target.IDRange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ranges = append(c.ranges, ranges...)
	for i := range ranges {
		last := ranges[i].First + ranges[i].Count - 1
		c.known = append(c.known, make([]uint64, max(int(last/64)+1-len(c.known), 0))...)
	}
}

// round makes the probes that have been asked for since the last, and says whether any have.
func (c *compiler) round() bool {
	// Before the bits are looked at, which are set before it changes.
	asked := c.memory.Asked()
	if asked == c.seen {
		return false
	}
	c.seen = asked
	c.all()
	return true
}

// all makes all probes that have been asked for. The target may have asked for whatever it likes.
func (c *compiler) all() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, known := range c.known {
		for set := c.memory.AskedWord(i) &^ known; set != 0; set &= set - 1 {
			slot, a := target.SlotOf(c.ranges, uint32(64*i+bits.TrailingZeros64(set)))
			if slot == nil {
				continue
			}
			if !c.switches.holds(slot, c.ranges) {
				atomic.StoreUint64((*uint64)(unsafe.Pointer(&a.Mem[slot.At])), slot.Word)
			}
			c.known[i] |= set & -set
			c.made++
		}
	}
}

// isMade says whether a function's probe is made. The caller holds mu.
func (c *compiler) isMade(id uint32) bool {
	return int(id/64) < len(c.known) && c.known[id/64]>>(id%64)&1 != 0
}

// Append puts a thread's events where they go.
func (k *known) Append(events []reel.Event) error {
	events, _ = k.switches.pick(&k.open, events, nil)
	return k.append(events)
}

func (k *known) append(events []reel.Event) error {
	if err := k.functions.Translate(events); err != nil {
		return err
	}
	return k.DestinationThread.Append(events)
}
