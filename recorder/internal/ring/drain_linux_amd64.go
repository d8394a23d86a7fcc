package ring

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/reel"
)

// Sink takes what one thread wrote. The events are only valid during the call.
type Sink interface {
	Append(events []reel.Event) error
	// Dropped says that so many more entries were dropped, and so many exits of accepted calls lost, up to about now.
	Dropped(entries, exits, tick uint64) error
}

// Drainer moves events out of the rings. It is used by one goroutine.
type Drainer struct {
	m       *Memory
	open    func(tid int, name string) (Sink, error)
	threads map[int]*thread
	order   []*thread
	seen    uint64 // registrations read
	torn    []tornChunk
	totals  Totals
}

// Totals are counts since the start.
type Totals struct {
	Events, Entries uint64
	Dropped         uint64 // entries
	LostExits       uint64 // of accepted calls
	Torn            uint64 // events that were begun and not ended: the thread died, or a signal handler jumped out
	Threads         int
}

type thread struct {
	tid       int
	sink      Sink
	chunk     uint32 // index+1
	pos       int
	dropped   uint64
	lost      uint64
	holeSince time.Time
	holed     bool // the chunk was left with a hole in it
}

// tornChunk is a chunk with an event that its thread may still write: it can't be used again until then.
type tornChunk struct {
	tid  int
	idx  uint32
	hole int
}

// holePatience is how long a thread may take from claiming an event to writing it, once it has moved on to the next
// chunk, which only a signal handler in between does.
const holePatience = 100 * time.Millisecond

// NewDrainer drains m. open is called for each thread when it is first met, with the name it had at its first event.
func NewDrainer(m *Memory, open func(tid int, name string) (Sink, error)) *Drainer {
	return &Drainer{m: m, open: open, threads: map[int]*thread{}}
}

// Totals returns the counts so far.
func (d *Drainer) Totals() Totals { return d.totals }

// Threads yields the IDs of the threads that are being drained.
func (d *Drainer) Threads(yield func(tid int) bool) {
	for _, t := range d.order {
		if !yield(t.tid) {
			return
		}
	}
}

// Round drains what there is and returns how many events that was. An error is the sink's; what was taken before it is
// counted.
func (d *Drainer) Round() (int, error) {
	d.m.Beat()
	if err := d.meet(); err != nil {
		return 0, err
	}
	n := 0
	for i, t := range d.order {
		k, err := d.drain(t, false)
		n += k
		if err != nil {
			return n, err
		}
		if i%64 == 63 {
			d.m.Beat()
		}
	}
	d.releaseTorn()
	return n, nil
}

// meet opens the threads that have registered since.
func (d *Drainer) meet() error {
	for n := atomic.LoadUint64(d.m.u64(HdrRegistered)); d.seen < n; d.seen++ {
		at := RegistryOff + d.seen%RegistrySize*RegistryEntry
		tid := int(atomic.LoadUint32(d.m.u32(at + RegTID)))
		if tid == 0 {
			return nil // not complete yet
		}
		name, _, _ := bytes.Cut(d.m.mem[at+RegName:at+RegName+16], []byte{0})
		if d.threads[tid] == nil && tid < MaxTID {
			sink, err := d.open(tid, string(name))
			if err != nil {
				return err
			}
			t := &thread{tid: tid, sink: sink}
			d.threads[tid] = t
			d.order = append(d.order, t)
			d.totals.Threads++
		}
		clear(d.m.mem[at : at+RegistryEntry])
	}
	return nil
}

func (t *thread) slot() uint64 { return SlotsOff + uint64(t.tid)*SlotSize }

// drain takes what the thread has written. With final set the thread writes no more, and holes are passed over at once.
func (d *Drainer) drain(t *thread, final bool) (int, error) {
	total := 0
	for {
		if t.chunk == 0 {
			t.chunk = d.valid(atomic.LoadUint32(d.m.u32(t.slot() + SlotFirst)))
			if t.chunk == 0 {
				break
			}
		}
		idx := t.chunk - 1
		events := d.m.events(idx)
		end := t.pos
		for end < len(events) && atomic.LoadUint32(&events[end].Word) != 0 {
			end++
		}
		if end > t.pos {
			run := events[t.pos:end]
			if err := t.sink.Append(run); err != nil {
				return total, err
			}
			d.count(run)
			clear(run)
			total += len(run)
			t.pos = end
			t.holeSince = time.Time{}
		}
		next := d.valid(atomic.LoadUint32(d.m.u32(d.m.chunk(idx) + ChunkNext)))
		if t.pos < len(events) {
			if !d.passHole(t, events, next != 0, final) {
				break
			}
			continue
		}
		if next == 0 {
			break
		}
		d.leave(t, idx)
		t.chunk, t.pos = next, 0
	}
	return total, d.drops(t)
}

// valid turns an index+1 read from shared memory into 0 if there is no such chunk.
func (d *Drainer) valid(i uint32) uint32 {
	if int(i) > d.m.chunks {
		return 0
	}
	return i
}

// leave frees the chunk the thread has left, unless an event in it may still be written.
func (d *Drainer) leave(t *thread, idx uint32) {
	if t.holed {
		t.holed = false
		return
	}
	d.m.free(idx)
}

// count adds to the totals.
func (d *Drainer) count(run []reel.Event) {
	entries := uint64(0)
	for i := range run {
		entries += uint64(^run[i].Word & 1)
	}
	d.totals.Events += uint64(len(run))
	d.totals.Entries += entries
}

// passHole moves past an event that was claimed and not written, when it is time to. moved says that the thread has
// gone on to another chunk.
func (d *Drainer) passHole(t *thread, events []reel.Event, moved, final bool) bool {
	if !final {
		if !moved {
			return false
		}
		if t.holeSince.IsZero() {
			t.holeSince = time.Now()
		}
		if time.Since(t.holeSince) < holePatience {
			return false
		}
	}
	at := t.pos
	for at < len(events) && atomic.LoadUint32(&events[at].Word) == 0 {
		at++
	}
	if at == len(events) && !moved {
		return false // just the end of what was written
	}
	for hole := t.pos; hole < at; hole++ {
		d.totals.Torn++
		if !final {
			d.torn = append(d.torn, tornChunk{t.tid, t.chunk - 1, hole})
			t.holed = true
		}
	}
	t.pos = at
	t.holeSince = time.Time{}
	return true
}

// releaseTorn frees chunks whose late events have come. Such an event is out of order by now, so it is thrown away; it
// stays counted as torn.
func (d *Drainer) releaseTorn() {
	if len(d.torn) == 0 {
		return
	}
	keep := d.torn[:0]
	held := map[uint32]int{}
	for _, c := range d.torn {
		if ev := &d.m.events(c.idx)[c.hole]; atomic.LoadUint32(&ev.Word) != 0 {
			*ev = reel.Event{}
			held[c.idx] += 0
			continue
		}
		held[c.idx]++
		keep = append(keep, c)
	}
	for idx, n := range held {
		if n == 0 && !d.inUse(idx) {
			d.m.free(idx)
		}
	}
	d.torn = keep
}

// inUse says whether a thread still reads from the chunk.
func (d *Drainer) inUse(idx uint32) bool {
	for _, t := range d.order {
		if t.chunk == idx+1 {
			t.holed = false // it is whole again, so leave will free it
			return true
		}
	}
	return false
}

// drops passes on what the thread counted as dropped.
func (d *Drainer) drops(t *thread) error {
	dropped := atomic.LoadUint64(d.m.u64(t.slot() + SlotDropped))
	lost := atomic.LoadUint64(d.m.u64(t.slot() + SlotLostExits))
	if dropped == t.dropped && lost == t.lost {
		return nil
	}
	entries, exits := dropped-t.dropped, lost-t.lost
	t.dropped, t.lost = dropped, lost
	d.totals.Dropped += entries
	d.totals.LostExits += exits
	return t.sink.Dropped(entries, exits, Ticks())
}

// End drains a thread that has ended to its last event, gives its memory back and forgets it. Its slot is free for a
// thread that gets the same ID, which the kernel gives out only after all others.
func (d *Drainer) End(tid int) error {
	t := d.threads[tid]
	if t == nil {
		return nil
	}
	_, err := d.drain(t, true)
	delete(d.threads, tid)
	for i, o := range d.order {
		if o == t {
			d.order = append(d.order[:i], d.order[i+1:]...)
			break
		}
	}
	keep := d.torn[:0]
	for _, c := range d.torn {
		if c.tid != tid {
			keep = append(keep, c)
		} else if c.idx+1 != t.chunk {
			d.m.free(c.idx)
		}
	}
	d.torn = keep
	if t.chunk != 0 {
		clear(d.m.events(t.chunk - 1))
		d.m.free(t.chunk - 1)
	}
	clear(d.m.mem[t.slot() : t.slot()+SlotSize])
	return err
}

// Finish drains every thread to its end, when none writes any more.
func (d *Drainer) Finish() error {
	err := d.meet()
	for len(d.order) > 0 {
		if e := d.End(d.order[0].tid); e != nil && err == nil {
			err = e
		}
	}
	return err
}
