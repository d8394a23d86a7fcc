package recorder

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
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
func (s *session) shareCode(st *process.Stopped, fd uint64, arenas []*arena) error {
	own, err := s.openMemfd(st, fd)
	if err != nil {
		return err
	}
	defer unix.Close(own)
	size := uint64(0)
	for _, a := range arenas {
		size += a.size
	}
	if err := unix.Ftruncate(own, int64(size)); err != nil {
		return fmt.Errorf("callreel: memory for stubs, %d bytes: %w", size, err)
	}
	at := int64(0)
	for _, a := range arenas {
		if a.mem, err = unix.Mmap(own, at, int(a.size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return fmt.Errorf("callreel: mapping memory for stubs, %d bytes: %w", a.size, err)
		}
		at += int64(a.size)
	}
	return nil
}

// compiler makes probes when they are asked for.
type compiler struct {
	memory *ring.Memory
	mu     sync.Mutex // guards ranges
	ranges []idRange  // whose arenas have their code
	known  []uint64   // a bit for each function whose probe is made; nil when there is nothing to make
	made   int
	stop   atomic.Bool
	done   chan struct{}
}

// makeProbes begins to make probes; nothing is done for a session in which all exist.
func (s *session) makeProbes() *compiler {
	c := &compiler{memory: s.memory, done: make(chan struct{})}
	if !s.rt.Lazy {
		close(c.done)
		return c
	}
	c.known = make([]uint64, ring.MaxFunctions/64)
	c.add(s.ranges)
	go c.run()
	return c
}

// add lets probes of functions be made, whose IDs are higher than those of all before. For libraries that come later it is to be
// called before their gates are opened.
func (c *compiler) add(ranges []idRange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ranges = append(c.ranges, ranges...)
}

// How long the compiler waits to be asked, and how long it rests, so that a target cannot keep it busy, after having been
// asked for nothing that often.
const (
	askedWait = 100 * time.Millisecond
	vainRest  = time.Millisecond
	maxVain   = 16
)

// run makes probes until end is called.
func (c *compiler) run() {
	defer close(c.done)
	// Where the kernel doesn't tell of our death the target finds out by our silence, somewhat later.
	_ = c.memory.Compiling()
	hurry()
	vain, before := 0, c.memory.Asked()
	for !c.stop.Load() {
		seen := c.memory.Asked()
		n := 0
		c.mu.Lock()
		c.memory.TakeAsked(func(id uint32) {
			if c.make(id) {
				n++
			}
		})
		c.mu.Unlock()
		if n > 0 {
			c.made += n
			c.memory.WakeMade()
			vain, before = 0, seen
			continue
		}
		if seen == before {
			vain = 0
		} else if vain++; vain > maxVain {
			time.Sleep(vainRest)
		}
		before = seen
		c.memory.WaitAsked(seen, askedWait)
	}
}

// make exchanges the words that make the function's slot its probe, and says so. It says whether there was anything to make: the
// target may ask for whatever it likes.
func (c *compiler) make(id uint32) bool {
	if id >= ring.MaxFunctions || c.known[id/64]>>(id%64)&1 != 0 {
		return false
	}
	slot, a := slotOf(c.ranges, id)
	if slot == nil {
		return false
	}
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&a.mem[slot.At])), slot.Word)
	c.memory.SetMade(id)
	c.known[id/64] |= 1 << (id % 64)
	return true
}

// end ends the making of probes.
func (c *compiler) end() {
	c.stop.Store(true)
	if c.known != nil {
		c.memory.WakeAsked()
	}
	<-c.done
}

// hurry lets the calling thread run as soon as it is woken, since a thread of the target's waits for it: what it does takes
// microseconds. Without the permission it is only a thread like others.
func hurry() {
	const resetOnFork = 1
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Flags: resetOnFork, Priority: 1}
	_ = unix.SchedSetAttr(0, &attr, 0)
}

// lateNames puts functions into the reel's table when their first event comes, so that the reel of a large program has only
// those in it that were called. The target's events name functions by the order in which they were chosen.
type lateNames struct {
	r     *recording
	count uint32 // of functions in the reel's table
	fresh []reel.Function

	mu     sync.Mutex // guards what follows
	ids    []uint32   // the reel's, by the target's; 0 for none yet
	ranges []idRange
}

func (r *recording) lateNames() {
	r.names = &lateNames{r: r}
	r.names.add(r.s.ranges, r.nextID)
}

// add adds the functions of ranges, whose IDs end before next.
func (n *lateNames) add(ranges []idRange, next uint32) {
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
	next := n.count + 1
	n.fresh = n.fresh[:0]
	for i := range events {
		e := &events[i]
		id := e.Word >> 1
		if id == 0 || uint64(id) >= uint64(len(n.ids)) {
			continue
		}
		if n.ids[id] == 0 {
			g, k := find(n.ranges, id)
			if g == nil {
				continue
			}
			n.ids[id] = next + uint32(len(n.fresh))
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
