package ring

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"github.com/callreel/callreel/reel"
)

// Rest is what rings in overwrite mode hold that nobody looks after any more, and that aren't mapped here. It believes nothing of what is in
// them. Threads may still be writing.
type Rest struct {
	// At is when it was looked which chunks there are, in TSC ticks. What threads wrote later may be in others.
	At uint64
	// Frozen is since when nothing has been overwritten in them, in TSC ticks: a trigger froze them then. 0 if they aren't frozen.
	Frozen uint64

	read   func(buf []byte, off uint64) error
	chunks []fullChunk // of threads, by their IDs, the oldest first
}

// ReadRest reads which chunks there are in ring memory of that many bytes, of which read gives pieces.
func ReadRest(size uint64, read func(buf []byte, off uint64) error) (*Rest, error) {
	le := binary.LittleEndian
	at := Ticks()
	head := make([]byte, HdrArmed)
	if err := read(head, 0); err != nil {
		return nil, err
	}
	n := le.Uint64(head[HdrChunks:])
	switch {
	case le.Uint64(head) != Magic || le.Uint32(head[HdrVersion:]) != Version:
		return nil, fmt.Errorf("callreel: the rings are of another version of callreel, this one knows %d", Version)
	case size < ChunksOff || n == 0 || n > MaxChunks || n > (size-ChunksOff)>>ChunkShift || le.Uint32(head[HdrSmall:]) != 0:
		return nil, fmt.Errorf("callreel: rings of %d bytes that say that they have %d chunks of an armed recording", size, n)
	}
	r := &Rest{At: at, read: read}
	frozen := le.Uint64(head[HdrPool:]) == 0
	since := max(1, le.Uint64(head[HdrFrozenAt:]))
	var h [ChunkHeader]byte
	for i := range uint32(n) {
		if err := read(h[:], chunkAt(i)); err != nil {
			return nil, err
		}
		state, tid := le.Uint32(h[ChunkState:]), le.Uint32(h[ChunkTID:])
		if s := state & ChunkStates; s != ChunkOwned && s != ChunkFull || tid == 0 || tid >= MaxTID {
			continue
		}
		r.chunks = append(r.chunks, fullChunk{i: i, state: state, seq: le.Uint32(h[ChunkSeq:]), tid: int(tid),
			from: le.Uint64(h[ChunkFrom:]), to: le.Uint64(h[ChunkTo:])})
		if le.Uint32(h[ChunkSpare:]) == 0 { // the last that could be taken was behind the call that fired
			since = max(since, le.Uint64(h[ChunkFrom:]))
		}
	}
	if frozen {
		r.Frozen = min(since, at)
	}
	slices.SortFunc(r.chunks, func(a, b fullChunk) int {
		if a.tid != b.tid {
			return a.tid - b.tid
		}
		return compareTicks(a.from, b.from)
	})
	return r, nil
}

// chunkAt is the offset of a chunk where none are small.
func chunkAt(i uint32) uint64 { return ChunksOff + uint64(i)<<ChunkShift }

// Bytes is how much memory all chunks take: at the most what Runs needs.
func (r *Rest) Bytes() uint64 { return uint64(len(r.chunks)) << ChunkShift }

// Threads are those that have written, in the order of their IDs.
func (r *Rest) Threads() (tids []int) {
	for _, c := range r.chunks {
		if n := len(tids); n == 0 || tids[n-1] != c.tid {
			tids = append(tids, c.tid)
		}
	}
	return tids
}

// Reaches is since when there is anything, in TSC ticks and not before least; least if there is nothing.
func (r *Rest) Reaches(least uint64) uint64 {
	reaches := ^uint64(0)
	for _, c := range r.chunks {
		reaches = min(reaches, max(c.from, least))
	}
	if reaches == ^uint64(0) {
		return least
	}
	return reaches
}

// Runs are what a thread has written up to a moment, in TSC ticks, that was At or before, the oldest first. They take as much memory as the thread's
// chunks.
func (r *Rest) Runs(tid int, to uint64) (all []Run, err error) {
	for _, c := range r.chunks {
		if c.tid != tid {
			continue
		}
		h, ok, err := r.copy(c)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, h)
		}
	}
	return upTo(all, to), nil
}

// copy copies a chunk, unless it has changed hands.
func (r *Rest) copy(c fullChunk) (h Run, ok bool, err error) {
	h = Run{TID: c.tid, Seq: c.seq, From: c.from, To: c.to, Events: make([]reel.Event, ChunkEvents)}
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(h.Events))), ChunkEvents*EventSize)
	if err := r.read(b, chunkAt(c.i)+ChunkHeader); err != nil {
		return h, false, err
	}
	var word [4]byte
	if err := r.read(word[:], chunkAt(c.i)+ChunkState); err != nil {
		return h, false, err
	}
	full := c.state&ChunkStates == ChunkFull
	if !full {
		h.To = 0
	}
	changes := binary.LittleEndian.Uint32(word[:])>>ChunkChanges - c.state>>ChunkChanges
	if changes > 1 || changes == 1 && full {
		return h, false, nil
	}
	h.Events, h.Torn = complete(h.Events, ChunkEvents)
	h.split()
	return h, len(h.Events) > 0, nil
}
