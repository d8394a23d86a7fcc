package ring

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/reel"
)

// Snapshotter looks after rings in overwrite mode, from which nothing is drained, and copies what they hold. It is used by one goroutine.
//
// As a Drainer it believes nothing of what is in the memory.
type Snapshotter struct {
	m        *Memory
	registry registry
	copied   []byte // memory for a copy, mapped when the first is made
	taker    *taker // nil where full chunks aren't taken
}

// starveLimit is for how long threads without a chunk don't look for one again when they found none.
const starveLimit = time.Millisecond

// initOverwrite lays chunks out that have nothing in them, a quarter of them for the reserve.
func (m *Memory) initOverwrite(ticksPerSecond uint64) {
	for i := range uint32(m.chunks) {
		c := m.chunk(i)
		if int(i) < m.reserved {
			atomic.StoreUint32(m.u32(c+ChunkSpare), 1)
			continue
		}
		atomic.StoreUint64(m.u64(c+ChunkHand), -uint64(m.chunks)) // as old as can be
		atomic.StoreUint32(m.u32(c+ChunkState), ChunkFull)
	}
	atomic.StoreUint64(m.u64(HdrChunks), uint64(m.chunks))
	atomic.StoreUint64(m.u64(HdrStarveLimit), uint64(starveLimit.Seconds()*float64(ticksPerSecond)))
	atomic.StoreUint64(m.u64(HdrGrace), uint64(m.chunks-m.reserved)/gracePart*PoolGrace)
	atomic.StoreUint64(m.u64(HdrPool), PoolOpen)
}

// gracePart is of how many chunks one may still be taken when a call has fired, before the rings are frozen: so many that a recorder which
// looks soon has lost nothing, and so few that what came before the call is there for one that looks late.
const gracePart = 4

// NewSnapshotter returns what takes snapshots of memory that was laid out with Setup.Overwrite.
func NewSnapshotter(m *Memory) *Snapshotter { return &Snapshotter{m: m} }

// Close gives back the memory for copies; events of a Take are no more valid.
func (k *Snapshotter) Close() error {
	if k.copied == nil {
		return nil
	}
	mem := k.copied
	k.copied = nil
	return unix.Munmap(mem)
}

// Meet calls f for the threads that have registered since the last call.
func (k *Snapshotter) Meet(f func(tid, pid int, name string)) {
	_ = k.registry.read(k.m, func(tid, pid int, name string) error {
		f(tid, pid, name)
		return nil
	})
}

// End gives back the chunk that a thread which has ended was at, and frees its slot. It returns how many entries the thread had dropped.
func (k *Snapshotter) End(tid int) (dropped uint64) {
	m, slot := k.m, SlotsOff+uint64(tid)*SlotSize
	dropped = atomic.LoadUint64(m.u64(slot + SlotDropped))
	if i := atomic.LoadUint32(m.u32(slot + SlotChunk)); i != 0 && uint64(i) <= uint64(m.chunks) {
		c := m.chunk(i - 1)
		state := atomic.LoadUint32(m.u32(c + ChunkState))
		if state&ChunkStates == ChunkOwned && atomic.LoadUint32(m.u32(c+ChunkTID)) == uint32(tid) {
			atomic.StoreUint64(m.u64(c+ChunkTo), Ticks())
			atomic.StoreUint64(m.u64(c+ChunkHand), atomic.LoadUint64(m.u64(HdrHand)))
			atomic.CompareAndSwapUint32(m.u32(c+ChunkState), state, state+1<<ChunkChanges+ChunkFull-ChunkOwned)
			if k.taker != nil {
				k.taker.again.Store(true)
			}
		}
	}
	m.forgetThread(tid)
	return dropped
}

// Dropped is how many entries the thread has dropped so far.
func (k *Snapshotter) Dropped(tid int) uint64 {
	if tid < 0 || tid >= MaxTID {
		return 0
	}
	return atomic.LoadUint64(k.m.u64(SlotsOff + uint64(tid)*SlotSize + SlotDropped))
}

// Holds says whether the thread has written anything into a chunk that is its own now.
func (k *Snapshotter) Holds(tid int) bool {
	if tid <= 0 || tid >= MaxTID {
		return false
	}
	var slot [SlotSize]byte
	k.m.peek(slot[:], SlotsOff+uint64(tid)*SlotSize)
	i := binary.LittleEndian.Uint32(slot[SlotChunk:])
	return i != 0 && uint64(i) <= uint64(k.m.chunks) && atomic.LoadUint32(k.m.u32(k.m.chunk(i-1)+ChunkTID)) == uint32(tid)
}

// Forget frees the slot of a thread that has ended and holds nothing.
func (k *Snapshotter) Forget(tid int) {
	if tid > 0 && tid < MaxTID {
		k.m.forgetThread(tid)
	}
}

// Threads are those that chunks say they are of.
func (k *Snapshotter) Threads() map[int]bool {
	all := map[int]bool{}
	for i := range uint32(k.m.chunks) {
		all[int(atomic.LoadUint32(k.m.u32(k.m.chunk(i)+ChunkTID)))] = true
	}
	return all
}

// Chunks is how many chunks there are.
func (k *Snapshotter) Chunks() int { return k.m.chunks }

// HasChunk says whether the thread has a chunk.
func (k *Snapshotter) HasChunk(tid int) bool {
	return tid >= 0 && tid < MaxTID && atomic.LoadUint32(k.m.u32(SlotsOff+uint64(tid)*SlotSize+SlotChunk)) != 0
}

// Oldest is when the oldest chunk that the rings hold was got by its thread, in TSC ticks; now if they hold none.
func (k *Snapshotter) Oldest() uint64 {
	oldest := Ticks()
	for i := range uint32(k.m.chunks) {
		c := k.m.chunk(i)
		if atomic.LoadUint32(k.m.u32(c+ChunkState))&ChunkStates != ChunkFull || atomic.LoadUint32(k.m.u32(c+ChunkTID)) == 0 {
			continue
		}
		if from := atomic.LoadUint64(k.m.u64(c + ChunkFrom)); int64(from-oldest) < 0 {
			oldest = from
		}
	}
	return oldest
}

// Freeze makes threads overwrite nothing: they fill the chunks that they have, and then drop.
func (k *Snapshotter) Freeze() { atomic.StoreUint64(k.m.u64(HdrPool), 0) }

// Frozen says whether the rings are frozen, or will be soon since a call has fired.
func (k *Snapshotter) Frozen() bool { return atomic.LoadUint64(k.m.u64(HdrPool)) != PoolOpen }

// LetGo ends that at once. The reserve is to be filled behind that, by Thaw.
func (k *Snapshotter) LetGo() { atomic.StoreUint64(k.m.u64(HdrPool), PoolOpen) }

// Thaw ends that, after the reserve has got back what was taken out of it.
func (k *Snapshotter) Thaw() {
	k.refill()
	k.LetGo()
}

// refill puts the chunks that have been full for longest into the reserve, for those that threads have taken out of it.
func (k *Snapshotter) refill() {
	type full struct {
		i     uint32
		state uint32
		to    uint64
	}
	m := k.m
	missing := 0
	var candidates []full
	for i := range uint32(m.chunks) {
		c := m.chunk(i)
		state := atomic.LoadUint32(m.u32(c + ChunkState))
		if state&ChunkStates == ChunkApart {
			continue
		}
		if atomic.LoadUint32(m.u32(c+ChunkSpare)) != 0 {
			missing++
			atomic.StoreUint32(m.u32(c+ChunkSpare), 0)
		}
		if state&ChunkStates == ChunkFull {
			candidates = append(candidates, full{i, state, atomic.LoadUint64(m.u64(c + ChunkTo))})
		}
	}
	if missing == 0 {
		return
	}
	slices.SortFunc(candidates, func(a, b full) int { return compareTicks(a.to, b.to) })
	for _, f := range candidates {
		if missing == 0 {
			return
		}
		c := m.chunk(f.i)
		if !atomic.CompareAndSwapUint32(m.u32(c+ChunkState), f.state, (f.state|ChunkStates)+1) {
			continue
		}
		clear(m.events(f.i))
		atomic.StoreUint32(m.u32(c+ChunkTID), 0)
		atomic.StoreUint32(m.u32(c+ChunkSpare), 1)
		m.push(HdrReserve, f.i)
		missing--
	}
}

func compareTicks(a, b uint64) int {
	switch d := int64(a - b); {
	case d < 0:
		return -1
	case d > 0:
		return 1
	}
	return 0
}

// Run is a run of one thread's events without a gap, as a chunk held them. The events are valid up to the next Take.
type Run struct {
	TID      int
	Seq      uint32 // of the chunk, among the thread's
	From, To uint64 // TSC when the thread got it and when it got the next; To is 0 for its present one
	Events   []reel.Event
	Payloads []Payload
	Torn     int // events that were begun and not ended
	// Marks are the passings of markers, which aren't among Events, and MarkPayloads what they carry.
	Marks        []reel.Event
	MarkPayloads []Payload
	// Peaks are, if not nil, the highest stack pointers of each PeakEvents events, which are in order of time then. Targets, if not nil, are the
	// target's IDs of functions by those that events have: else they have the target's own.
	Peaks   []uint32
	Targets []uint32
}

// Prepare gets the memory for a copy, so that the first takes no longer than others.
func (k *Snapshotter) Prepare() (err error) {
	if k.copied != nil {
		return nil
	}
	size := k.m.chunks << ChunkShift
	k.copied, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("callreel: memory for a copy of the rings, %d MiB: %w", size>>20, err)
	}
	if k.taker != nil { // little of it is used
		return nil
	}
	_ = unix.Madvise(k.copied, unix.MADV_HUGEPAGE) // where there are none, small ones do
	for i := 0; i < len(k.copied); i += unix.Getpagesize() {
		k.copied[i] = 0
	}
	return nil
}

// Take copies what all chunks hold up to a moment, in TSC ticks, that has been: those of one thread in order, the threads by their IDs.
// Meanwhile threads go on; only if the rings are frozen is what was there at that moment in the copy for certain.
func (k *Snapshotter) Take(to uint64) (all []Run, err error) {
	m := k.m
	if err := k.Prepare(); err != nil {
		return nil, err
	}
	for i := range uint32(m.chunks) {
		if h, ok := k.copyChunk(i); ok {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b Run) int {
		if a.TID != b.TID {
			return a.TID - b.TID
		}
		return compareTicks(a.From, b.From)
	})
	return upTo(all, to), nil
}

// upTo leaves out what was written after a moment: a thread that has gone on to a chunk which was copied later than the one before has
// written events in between that are in neither copy.
func upTo(all []Run, to uint64) []Run {
	kept, ended := all[:0], 0
	for _, h := range all {
		if h.TID == ended {
			continue
		}
		if n := len(h.Events); n > 0 && h.Events[n-1].Time > to {
			j := slices.IndexFunc(h.Events, func(e reel.Event) bool { return e.Time > to })
			h.Events, ended = h.Events[:j], h.TID
			h.Payloads = Within(h.Payloads, 0, j)
		}
		h.splitMarks()
		if len(h.Events)+len(h.Marks) > 0 {
			kept = append(kept, h)
		}
	}
	return kept
}

// copyChunk copies chunk i, if it holds events. A chunk that changes hands meanwhile holds none: it was the oldest.
func (k *Snapshotter) copyChunk(i uint32) (h Run, ok bool) {
	m := k.m
	c := m.chunk(i)
	state := atomic.LoadUint32(m.u32(c + ChunkState))
	if s := state & ChunkStates; s != ChunkOwned && s != ChunkFull || k.wasTaken(i, state) {
		return h, false
	}
	h.TID = int(atomic.LoadUint32(m.u32(c + ChunkTID)))
	h.Seq = atomic.LoadUint32(m.u32(c + ChunkSeq))
	h.From, h.To = atomic.LoadUint64(m.u64(c+ChunkFrom)), atomic.LoadUint64(m.u64(c+ChunkTo))
	if h.TID <= 0 || h.TID >= MaxTID {
		return h, false
	}
	events := k.copied[uint64(i)<<ChunkShift:][:ChunkEvents*EventSize]
	h.Events = unsafe.Slice((*reel.Event)(unsafe.Pointer(unsafe.SliceData(events))), ChunkEvents)
	if state&ChunkStates == ChunkFull {
		copy(h.Events, m.events(i))
		h.Events, h.Torn = complete(h.Events, ChunkEvents)
	} else {
		h.To = 0
		h.Events, h.Torn = m.copyWritten(i, h.TID, h.Events)
	}
	changes := atomic.LoadUint32(m.u32(c+ChunkState))>>ChunkChanges - state>>ChunkChanges
	if changes > 1 || changes == 1 && state&ChunkStates == ChunkFull { // once is from ChunkOwned to ChunkFull, else
		return h, false
	}
	h.split()
	return h, len(h.Events) > 0
}

// copyWritten copies the events of a chunk that its thread may be writing to.
func (m *Memory) copyWritten(i uint32, tid int, to []reel.Event) (events []reel.Event, torn int) {
	claimed := ChunkEvents
	slot := SlotsOff + uint64(tid)*SlotSize
	if atomic.LoadUint32(m.u32(slot+SlotChunk)) == i+1 {
		word := atomic.LoadUint64(m.u64(slot + SlotSpare))
		if word == 0 {
			word = atomic.LoadUint64(m.u64(slot + SlotClaim))
		}
		if atomic.LoadUint32(m.u32(slot+SlotChunk)) == i+1 { // else the word may be the next chunk's
			claimed = ChunkEvents - max(0, min(-int(int64(word)>>ClaimShift), ChunkEvents))
		}
	}
	from := m.events(i)
	for j := range claimed {
		// The word is stored last, so the rest of an event is there when it is.
		to[j].Word = atomic.LoadUint32(&from[j].Word)
		to[j].Time = atomic.LoadUint64(&from[j].Time)
		to[j].SP = atomic.LoadUint32(&from[j].SP)
	}
	return complete(to, claimed)
}

// complete leaves out, of n events, those that weren't written.
func complete(events []reel.Event, n int) ([]reel.Event, int) {
	kept := 0
	for j := range n {
		if events[j].Word != 0 {
			if kept != j {
				events[kept] = events[j]
			}
			kept++
		}
	}
	return events[:kept], n - kept
}

// InOrder gives events that are later than one behind them that one's time, see putInOrder.
func InOrder(events []reel.Event) { putInOrder(events) }
