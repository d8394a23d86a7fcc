package past

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// Chunk is a run of one thread's events without a gap. It doesn't change.
type Chunk struct {
	TID int
	// Seq is the number of the first of the ring's chunks that it holds, among the thread's, Next that behind the last.
	Seq, Next uint32
	// From and To are when the thread got the first of them, and when it got the next after the last, in TSC ticks.
	From, To uint64
	// Fresh says that what the thread has called before is missing, or that there is nothing before.
	Fresh bool
	// Above is the highest stack pointer of all events. Opens are the calls that they have opened and not ended, outermost first.
	Above uint32
	Opens []Open
	// Marks are the passings of markers, and MarkPayloads what they carry.
	Marks        []reel.Event
	MarkPayloads []ring.Payload

	packed     reel.Packed
	few        []reel.Event // in place of packed, where there are few
	payloads   []byte       // see payloads.go
	mapped     []byte       // what packed is in, if that isn't Go's memory
	bytes      int
	refs       int // guarded by the Store's mu
	goroutines bool
}

// Overhead is what a chunk takes besides, in bytes.
const overhead = 320

// mappedFrom is how many bytes a chunk must have to get pages of its own, which are given back at once.
const mappedFrom = 16 << 10

// keep copies what a packer has made.
func (c *Chunk) keep(p reel.Packed) error {
	n := len(p.Payload)
	if n < mappedFrom {
		p.Payload = slices.Clone(p.Payload)
		c.packed = p
		c.bytes += n
		return nil
	}
	size := (n + unix.Getpagesize() - 1) &^ (unix.Getpagesize() - 1)
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("callreel: memory for %d KiB of the past: %w", size>>10, err)
	}
	copy(mem, p.Payload)
	c.mapped = mem
	p.Payload = mem[:n:n]
	c.packed = p
	c.bytes += size
	return nil
}

// free gives the memory back.
func (c *Chunk) free() {
	if c.mapped != nil {
		_ = unix.Munmap(c.mapped) // it was mapped by keep
		c.mapped, c.packed.Payload = nil, nil
	}
}

// Events is how many events it holds.
func (c *Chunk) Events() int { return len(c.few) + c.packed.Events }

// First and Last are the first and the highest time of its events, in ticks.
func (c *Chunk) First() uint64 {
	if len(c.few) > 0 {
		return c.few[0].Time
	}
	return c.packed.First
}

// Last is the highest time of its events, in ticks.
func (c *Chunk) Last() uint64 {
	if n := len(c.few); n > 0 {
		return c.few[n-1].Time
	}
	return c.packed.Last
}

// After is which calls are open when it ends, of those that were open before and its own.
func (c *Chunk) After(open []Open) []Open {
	if c.Fresh {
		open = nil
	}
	return later(open, c.Above, c.Opens, c.goroutines)
}

// Run is the chunk as the ring has held it, its events in memory after buf's beginning. ids are the target's IDs of functions by the numbers
// that the store's Translate has given.
func (c *Chunk) Run(ids []uint32, buf []reel.Event) (ring.Run, error) {
	h := ring.Run{TID: c.TID, Seq: c.Seq, From: c.From, To: c.To, Marks: c.Marks, MarkPayloads: c.MarkPayloads}
	var err error
	if c.few != nil {
		h.Events = append(buf[:0], c.few...)
	} else if h.Events, err = c.packed.Decode(buf[:0]); err != nil {
		return h, err
	}
	for i := range h.Events {
		e := &h.Events[i]
		if id := e.Word >> 1; uint64(id) < uint64(len(ids)) && ids[id] != 0 {
			e.Word = ids[id]<<1 | e.Word&1
		}
	}
	eachPayload(c.payloads, func(at int, _ reel.Event, data []byte) {
		h.Payloads = append(h.Payloads, ring.Payload{Event: at, Data: data})
	})
	return h, nil
}

// Carrying are the events that carry something, with the target's function IDs, and at which places they are in the chunk.
func (c *Chunk) Carrying() (events []reel.Event, at []int, payloads []ring.Payload) {
	eachPayload(c.payloads, func(i int, e reel.Event, data []byte) {
		payloads = append(payloads, ring.Payload{Event: len(events), Data: data})
		events, at = append(events, e), append(at, i)
	})
	return events, at, payloads
}

// AppendTo writes the events to a thread of a reel whose functions have the numbers that the store's Translate has given. Of values all
// fields are given; Number is the event's place in the chunk.
func (c *Chunk) AppendTo(w *reel.ThreadWriter, values []reel.ValueSet) error {
	if c.few != nil {
		return w.AppendWith(c.few, values)
	}
	return w.AppendPacked(&c.packed, values)
}
