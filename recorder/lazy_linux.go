package recorder

import (
	"math/bits"
	"slices"
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

// lateNames puts functions into the reel's table when their first event comes, so that the reel of a large program has only
// those in it that were called. The target's events name functions by the order in which they were chosen.
type lateNames struct {
	r        *recording
	to       functionTable
	fresh    []reel.Function
	freshIDs []uint32 // the target's

	mu     sync.Mutex // guards what follows
	ids    []uint32   // the reel's, by the target's; 0 for none yet
	ranges []target.IDRange
}

// functionTable gives functions consecutive IDs, as a reel does.
type functionTable interface {
	AddFunctions(list []reel.Function) (firstID uint32, err error)
}

func (r *recording) lateNames() {
	r.names = &lateNames{r: r, to: r.to}
	r.names.add(r.s.Ranges, r.nextID)
}

// anew returns the same with none in the table to yet.
func (n *lateNames) anew(to functionTable) *lateNames {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &lateNames{r: n.r, to: to, ids: make([]uint32, len(n.ids)), ranges: slices.Clone(n.ranges)}
}

// add adds the functions of ranges, whose IDs end before next.
func (n *lateNames) add(ranges []target.IDRange, next uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ids = append(n.ids, make([]uint32, int(next)-len(n.ids))...)
	n.ranges = append(n.ranges, ranges...)
}

// translate gives events the reel's function IDs. Events of functions that there are not are left as they are: what reads
// reels says that it doesn't know them.
func (n *lateNames) translate(events []reel.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.introduce(events); err != nil {
		return err
	}
	for i := range events {
		e := &events[i]
		if id := e.Word >> 1; uint64(id) < uint64(len(n.ids)) && n.ids[id] != 0 {
			e.Word = n.ids[id]<<1 | e.Word&1
		}
	}
	return nil
}

// idOf is the reel's ID of a function, 0 if it has none.
func (n *lateNames) idOf(id uint32) uint32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.introduce([]reel.Event{reel.Entry(0, 0, id)}); err != nil || uint64(id) >= uint64(len(n.ids)) {
		return 0
	}
	return n.ids[id]
}

// introduce puts the functions of events into the reel's table that are not in it.
func (n *lateNames) introduce(events []reel.Event) error {
	n.fresh, n.freshIDs = n.fresh[:0], n.freshIDs[:0]
	for i := range events {
		id := events[i].Word >> 1
		if uint64(id) >= uint64(len(n.ids)) || n.ids[id] != 0 {
			continue
		}
		g, k := target.FindRange(n.ranges, id)
		if g == nil {
			continue
		}
		n.ids[id] = pendingID
		n.fresh, n.freshIDs = append(n.fresh, n.r.describe(g, k)), append(n.freshIDs, id)
	}
	if len(n.fresh) == 0 {
		return nil
	}
	if n.r.tree != nil {
		err := n.r.tree.tables.functions(n.fresh, func(i int, id uint32) { n.ids[n.freshIDs[i]] = id })
		if err != nil { // which ends the recording
			n.forget()
		}
		return err
	}
	first, err := n.to.AddFunctions(n.fresh)
	if err != nil {
		n.forget()
		return err
	}
	for i, id := range n.freshIDs {
		n.ids[id] = first + uint32(i)
	}
	return nil
}

// forget leaves the functions without a number that introduce was at.
func (n *lateNames) forget() {
	for _, id := range n.freshIDs {
		n.ids[id] = 0
	}
}

// pendingID stands for an ID that the reel has not given yet.
const pendingID = ^uint32(0)

// Append puts a thread's events where they go.
func (k *known) Append(events []reel.Event) error {
	events, _ = k.switches.pick(&k.open, events, nil)
	return k.append(events)
}

func (k *known) append(events []reel.Event) error {
	if k.names != nil {
		if err := k.names.translate(events); err != nil {
			return err
		}
	}
	return k.DestinationThread.Append(events)
}
