package ring

import (
	"slices"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/reel"
)

// A recorder may take what full chunks hold before they are overwritten. It changes nothing about them: a chunk that was taken is
// overwritten when its turn comes, as it is when nobody takes anything. So the target doesn't know whether anybody does, and it doesn't
// matter to it whether the recorder keeps up, or is there at all.

// taker is what a Snapshotter knows of the chunks that were taken.
type taker struct {
	states []uint32    // by chunk: its state when it was taken, 0 before
	seen   []uint32    // by chunk: its state when it was last looked at
	unread uint64      // chunks that were overwritten before they were taken
	hand   uint64      // HdrHand when all were last looked at
	again  atomic.Bool // some are to be looked at all the same: they had holes, or their threads have ended
	copied []reel.Event
	peaks  []uint32
	full   []fullChunk
	owned  int // chunks that were threads' present ones when all were last looked at
}

// fullChunk is one that can be taken.
type fullChunk struct {
	i, state, seq uint32
	tid           int
	from, to      uint64
	hand          uint64
}

// Names are other words for those that the target writes into events of calls.
type Names struct {
	// Words has them by the target's words, 0 where there is none.
	Words []uint32
	// Targets are the target's IDs of functions by the names' IDs; nil if the words are the target's own.
	Targets []uint32
}

// TakesFull says that full chunks will be taken, by TakeFull. Take copies only what wasn't then.
func (k *Snapshotter) TakesFull() {
	k.taker = &taker{states: make([]uint32, k.m.chunks), seen: make([]uint32, k.m.chunks), copied: make([]reel.Event, ChunkEvents),
		peaks: make([]uint32, 0, (ChunkEvents+PeakEvents-1)/PeakEvents)}
	k.taker.again.Store(true)
}

// Moved is how many chunks threads have taken since the last TakeFull, about.
func (k *Snapshotter) Moved() uint64 { return atomic.LoadUint64(k.m.u64(HdrHand)) - k.taker.hand }

// fullPatience is for which part of a round of the hand, one in so many, a full chunk waits for events that were claimed and not written. In
// half a round it may be overwritten.
const fullPatience = 4

// TakeFull calls f for each chunk that has become full since the last call: those of one thread in their order. The events are valid during
// the call. Those of a thread whose oldest chunk has an event that isn't written yet are left for the next time, but not for so long that
// they would be overwritten. It returns how many chunks threads have taken since the last call, about.
//
// Where all of a chunk's events are of calls of functions that names has, they get those names; nearly all chunks are so.
func (k *Snapshotter) TakeFull(names Names, f func(*Run) error) (moved uint64, err error) {
	m, t := k.m, k.taker
	hand := atomic.LoadUint64(m.u64(HdrHand))
	moved = hand - t.hand
	if again := t.again.Swap(false); moved == 0 && !again {
		return 0, nil
	}
	t.hand = hand
	t.full, t.owned = t.full[:0], 0
	for i := range uint32(m.chunks) {
		c := m.chunk(i)
		state := atomic.LoadUint32(m.u32(c + ChunkState))
		t.unread += unread(t.seen[i], state, t.states[i] == t.seen[i] || t.seen[i]>>ChunkChanges == 0)
		t.seen[i] = state
		if state&ChunkStates == ChunkOwned {
			t.owned++
		}
		if state&ChunkStates != ChunkFull || t.states[i] == state {
			continue
		}
		tid := int(atomic.LoadUint32(m.u32(c + ChunkTID)))
		if tid <= 0 || tid >= MaxTID { // there is nothing in it
			continue
		}
		t.full = append(t.full, fullChunk{i, state, atomic.LoadUint32(m.u32(c + ChunkSeq)), tid,
			atomic.LoadUint64(m.u64(c + ChunkFrom)), atomic.LoadUint64(m.u64(c + ChunkTo)), atomic.LoadUint64(m.u64(c + ChunkHand))})
	}
	slices.SortFunc(t.full, func(a, b fullChunk) int {
		if a.tid != b.tid {
			return a.tid - b.tid
		}
		return compareTicks(a.from, b.from)
	})
	waits := 0 // the thread that does
	for _, c := range t.full {
		if c.tid == waits {
			continue
		}
		h, holes, ok := k.copyFull(c, names)
		if !ok {
			continue // it has been overwritten: its number is missing
		}
		if holes && (hand-c.hand)*fullPatience < uint64(m.chunks) {
			waits = c.tid
			t.again.Store(true)
			continue
		}
		t.states[c.i] = c.state
		if len(h.Events)+len(h.Marks) == 0 {
			continue
		}
		if err := f(&h); err != nil {
			return moved, err
		}
	}
	return moved, nil
}

// unread is how often a chunk has been full between two looks and isn't any more, without having been taken: it is full, being made somebody's
// and somebody's by turns, and counts that. taken says that it had been at the first look, or was empty.
func unread(before, now uint32, taken bool) (times uint64) {
	changes := uint64(now>>ChunkChanges-before>>ChunkChanges) & (1<<(32-ChunkChanges) - 1)
	if changes == 0 {
		return 0
	}
	steps := changes // since it was full last
	switch before & ChunkStates {
	case ChunkFull:
		if !taken {
			times++
		}
	case ChunkTaken:
		steps++
	case ChunkOwned:
		steps += 2
	default: // of the reserve
		return 0
	}
	times += steps / 3
	if now&ChunkStates == ChunkFull { // it can be taken now
		times -= min(times, 1)
	}
	return times
}

// Unread is how many chunks were overwritten before they were taken, up to the last TakeFull. Nothing else tells of one that was its thread's only
// one.
func (k *Snapshotter) Unread() uint64 { return k.taker.unread }

// Crowded says whether most chunks were threads' present ones at the last TakeFull: those of threads that have ended are to be found.
func (k *Snapshotter) Crowded() bool { return k.taker.owned > k.m.chunks/2 }

// copyFull copies a full chunk. ok is false if it isn't any more.
func (k *Snapshotter) copyFull(c fullChunk, names Names) (h Run, holes, ok bool) {
	events := k.taker.copied
	if peaks, ok := copyAs(events, k.m.events(c.i), names.Words, k.taker.peaks[:0]); ok {
		h = Run{TID: c.tid, Seq: c.seq, From: c.from, To: c.to, Events: events, Peaks: peaks, Targets: names.Targets}
		return h, false, atomic.LoadUint32(k.m.u32(k.m.chunk(c.i)+ChunkState)) == c.state
	}
	copy(events, k.m.events(c.i))
	if atomic.LoadUint32(k.m.u32(k.m.chunk(c.i)+ChunkState)) != c.state {
		return h, false, false
	}
	h = Run{TID: c.tid, Seq: c.seq, From: c.from, To: c.to}
	// A thread that has ended leaves the end of its chunk empty, which is no hole.
	n := len(events)
	for n > 0 && events[n-1].Word == 0 {
		n--
	}
	special, switched := false, -1
	for i := range events[:n] {
		w := events[i].Word
		if w-1 < MarkWord-1 { // of a call, as nearly all are
			continue
		}
		switch {
		case w == 0:
			holes = true
		case isPayload(w) || IsMark(w):
			special = true
		case isSwitch(w):
			switched = i
		}
	}
	if holes {
		h.Events, h.Torn = complete(events[:n], n)
	} else {
		h.Events = events[:n:n]
	}
	switch {
	case special:
		h.split()
		h.splitMarks()
		h.thinSwitches()
	case switched >= 0 && !holes:
		h.Marks = []reel.Event{events[switched]}
	case switched >= 0:
		h.splitMarks()
		h.thinSwitches()
	}
	return h, holes, true
}

// PeakEvents is of how many events Run.Peaks has the highest stack pointer.
const PeakEvents = 64

// copyAs copies events that the target may be writing over, with the words that theirs become. Meanwhile it looks whether their times are in
// order, and for the highest stack pointers: what comes out of memory that another core has written leaves time for that. ok is false if times
// are in no order, or there is an event that is none of a call, that isn't written, or that nothing is known of: then what was copied is of no use.
func copyAs(to, from []reel.Event, words, peaks []uint32) (_ []uint32, ok bool) {
	last := uint64(1) // an event without a time is none of those
	for len(from) > 0 {
		n := min(PeakEvents, len(from), len(to))
		peak, back := uint32(0), uint64(0)
		block := to[:n]
		for i := range block {
			time, sp, word := from[i].Time, from[i].SP, from[i].Word
			if uint64(word) >= uint64(len(words)) {
				return nil, false
			}
			as := words[word]
			if as == 0 {
				return nil, false
			}
			back |= time - last
			last = time
			peak = max(peak, sp)
			e := &block[i]
			e.Time, e.SP, e.Word = time, sp, as
		}
		if int64(back) < 0 {
			return nil, false
		}
		peaks = append(peaks, peak)
		from, to = from[n:], to[n:]
	}
	return peaks, true
}

// TakeBackNames gives events the target's own words again, if they have others.
func (h *Run) TakeBackNames() {
	if h.Targets == nil {
		return
	}
	for i := range h.Events {
		e := &h.Events[i]
		e.Word = h.Targets[e.Word>>1]<<1 | e.Word&1
	}
	h.Targets = nil
}

// thinSwitches leaves out, of what says which goroutine goes on, all that no mark comes behind, but for the last.
func (h *Run) thinSwitches() {
	kept, with := h.Marks[:0], h.MarkPayloads
	for i, e := range h.Marks {
		if isSwitch(e.Word) && i+1 < len(h.Marks) && isSwitch(h.Marks[i+1].Word) {
			continue
		}
		if len(with) > 0 && with[0].Event == i {
			with[0].Event = len(kept)
			with = with[1:]
		}
		kept = append(kept, e)
	}
	h.Marks = kept
}

// Shed gives the memory back that copies have used; the events of a Take are no more valid.
func (k *Snapshotter) Shed() {
	if k.taker != nil && k.copied != nil {
		_ = unix.Madvise(k.copied, unix.MADV_DONTNEED) // it only costs memory
	}
}

// wasTaken says whether chunk i, in a state, was taken.
func (k *Snapshotter) wasTaken(i, state uint32) bool {
	return k.taker != nil && k.taker.states[i] == state && state&ChunkStates == ChunkFull
}
