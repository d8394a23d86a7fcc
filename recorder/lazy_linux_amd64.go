package recorder

import (
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/reel"
)

// codeName is the name of the memory of arenas in which probes are made on the first call, and codeMapping what
// /proc/PID/maps shows for it. It is mapped for reading and executing in the target, and for writing only in the recorder: an
// exchange of eight aligned bytes there is one for the target's threads as well, which no write by ptrace or /proc promises.
const (
	codeName    = "callreel-code"
	codeMapping = "/memfd:" + codeName
)

// shareCode sizes the file of the arenas' code, which is the target's descriptor fd, and maps it here.
func (s *session) shareCode(st *process.Stopped, fd uint64) error {
	own, err := s.openMemfd(st, fd)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	size := uint64(0)
	for _, a := range s.arenas {
		size += a.size
	}
	if err := unix.Ftruncate(own, int64(size)); err != nil {
		return fmt.Errorf("callreel: memory for stubs, %d bytes: %w", size, err)
	}
	at := int64(0)
	for _, a := range s.arenas {
		if a.mem, err = unix.Mmap(own, at, int(a.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return fmt.Errorf("callreel: mapping memory for stubs, %d bytes: %w", a.size, err)
		}
		at += int64(a.size)
	}
	return nil
}

// compiler makes probes when they are asked for. No thread waits for that, so it is done in the rounds of the drain.
type compiler struct {
	s     *session
	known []uint64 // a bit for each function whose probe is made; nil when there is nothing to make
	seen  uint64   // how often probes had been asked for
	made  int
}

// makeProbes begins to make probes; nothing is done for a session in which all exist.
func (s *session) makeProbes() *compiler {
	c := &compiler{s: s}
	if s.rt.Lazy {
		last := uint32(0)
		for _, g := range s.ranges {
			last = max(last, g.first+g.count-1)
		}
		c.known = make([]uint64, last/64+1)
	}
	return c
}

// round makes the probes that have been asked for since the last.
func (c *compiler) round() {
	if c.known == nil {
		return
	}
	if asked := c.s.memory.Asked(); asked != c.seen {
		c.seen = asked
		c.all()
	}
}

// all makes all probes that have been asked for. The target may have asked for whatever it likes.
func (c *compiler) all() {
	for i, known := range c.known {
		asked := c.s.memory.AskedWord(i) &^ known
		for set := asked; set != 0; set &= set - 1 {
			slot, a := c.s.slotOf(uint32(64*i + bits.TrailingZeros64(set)))
			if slot == nil {
				continue
			}
			atomic.StoreUint64((*uint64)(unsafe.Pointer(&a.mem[slot.At])), slot.Word)
			c.made++
		}
		c.known[i] |= asked
	}
}

// lateNames puts functions into the reel's table when their first event comes, so that the reel of a large program has only
// those in it that were called. The target's events name functions by the order in which they were chosen.
type lateNames struct {
	r     *recording
	count uint32   // of functions in the reel's table
	ids   []uint32 // the reel's, by the target's; 0 for none yet
	fresh []reel.Function
}

func (r *recording) lateNames() {
	r.names = &lateNames{r: r, ids: make([]uint32, r.result.Traced+1)}
}

// translate gives events the reel's function IDs. Events of functions that there are not are left as they are: what reads
// reels says that it doesn't know them.
func (n *lateNames) translate(events []reel.Event) error {
	next := n.count + 1
	n.fresh = n.fresh[:0]
	for i := range events {
		e := &events[i]
		id := e.Word >> 1
		if id == 0 || uint64(id) >= uint64(len(n.ids)) {
			continue
		}
		if n.ids[id] == 0 {
			n.ids[id] = next + uint32(len(n.fresh))
			g, k := n.r.s.find(id)
			n.fresh = append(n.fresh, n.r.describe(g, k))
		}
		e.Word = n.ids[id]<<1 | e.Word&1
	}
	if len(n.fresh) == 0 {
		return nil
	}
	first, err := n.r.w.AddFunctions(n.fresh)
	if err == nil && first != next {
		err = fmt.Errorf("callreel: the reel's next function is %d, not %d", first, next)
	}
	n.count += uint32(len(n.fresh))
	return err
}

// Append puts a thread's events into the reel.
func (k *known) Append(events []reel.Event) error {
	if k.names != nil {
		if err := k.names.translate(events); err != nil {
			return err
		}
	}
	return k.ThreadWriter.Append(events)
}
