package timeline

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/callreel/callreel/reel"
)

var errStored = errors.New("timeline: the index in the reel doesn't fit it")

// stored returns what the index in a reel says, nil if there is none. Whatever
// is in it, what comes of it may be wrong but can be used.
func (t *Timeline) stored(f *reel.File) (*snapshot, error) {
	b := f.MappedTimeline()
	if b == nil {
		return nil, nil
	}
	s := t.newSnapshot(f)
	s.indexed = true
	r := reader{s: s, ids: &t.ids}
	if !r.open(b) {
		// The checksum of it all tells whether it is damaged, which File notes, or
		// another version's.
		if _, err := f.Timeline(); err != nil {
			return nil, err
		}
		return nil, errStored
	}
	if !r.read() || r.bad {
		return nil, errStored
	}
	return s, nil
}

// open finds the directory and the summaries.
func (r *reader) open(b []byte) bool {
	w := wire{b: b}
	if w.uvarint() != storeVersion {
		return false
	}
	n := w.uvarint()
	if w.bad || len(w.b) < 4 || n > uint64(len(w.b)-4) {
		return false
	}
	sum := binary.LittleEndian.Uint32(w.b)
	r.b, r.summaries = w.b[4:4+n], w.b[4+n:]
	return crc32.Checksum(r.b, castagnoli) == sum
}

// reader reads an index.
type reader struct {
	wire
	summaries []byte // those of segments to come
	s         *snapshot
	ids       *segmentIDs
}

// maxTime is more ticks than any recording has, and keeps sums from overflowing.
const maxTime = 1 << 62

// count reads how many of something there are, of which each takes at least
// size bytes.
func (r *reader) count(size int) int { return int(r.atMost(uint64(len(r.b) / size))) }

// after reads a time as the difference to one before.
func (r *reader) after(at uint64) uint64 { return at + r.atMost(maxTime-at) }

// near reads a time as the signed difference to another.
func (r *reader) near(at uint64) uint64 {
	v := int64(at) + unzigzag(r.atMost(2*maxTime))
	if v < 0 || v > maxTime {
		r.fail()
		return 0
	}
	return uint64(v)
}

func (r *reader) read() bool {
	if r.uvarint() != cellShift {
		return false
	}
	for _, want := range source(r.s.f) {
		if r.uvarint() != want {
			return false
		}
	}
	r.s.end = r.atMost(maxTime)
	r.s.done = newColumns(r.s.window(), 0)
	r.s.done.shift = uint(r.atMost(62 - 12))
	for i := range r.s.done.busy[:r.atMost(maxColumns)] {
		r.s.done.busy[i] = r.uvarint()
	}
	goroutines := r.s.f.Header().Goroutines
	if !r.batches(goroutines) {
		return false
	}
	threads := r.s.f.Threads()
	n := r.count(9)
	if !goroutines && n != len(threads) {
		return false
	}
	byKey := make(map[uint32]*reel.Thread, len(threads))
	for i := range threads {
		byKey[threads[i].Key] = &threads[i]
	}
	for i := range n {
		l := &lane{Lane: Lane{ID: uint32(i)}}
		l.Thread, l.Goroutine = uint32(r.atMost(1<<32-1)), r.uvarint()
		th := byKey[l.Thread]
		if th == nil || !goroutines && (l.Thread != threads[i].Key || l.Goroutine != 0) {
			return false
		}
		l.TID, l.Process, l.Name = th.TID, th.Process, th.Name
		if !r.lane(l) {
			return false
		}
		if goroutines {
			k := keyOfRun(l.Goroutine, l.Thread)
			if r.s.laneOf[k] != nil {
				return false
			}
			r.s.laneOf[k] = l
		}
		r.s.lanes = append(r.s.lanes, l)
	}
	return len(r.b) == 0 && len(r.summaries) == 0
}

func (r *reader) batches(goroutines bool) bool {
	n := r.count(2)
	if !goroutines {
		return n == 0
	}
	r.s.laneOf = map[laneKey]*lane{}
	r.s.batches = make([]batch, 0, n)
	most := 2 * batchEvents(len(r.s.f.Threads()), segmentEvents)
	for range n {
		w := batch{events: int(r.atMost(uint64(most))), marks: []reel.RunMark{}}
		marks := r.count(7)
		w.marks = slices.Grow(w.marks, marks)
		last := uint32(0)
		for range marks {
			m := reel.RunMark{Thread: uint32(r.atMost(1<<32 - 1)), Chunk: int(r.atMost(1 << 32)), Skip: int(r.atMost(1 << 32)), Next: uint32(r.atMost(1<<32 - 1)), Goroutine: r.uvarint()}
			flags := r.atMost(3)
			m.Known, m.Lost, m.Start = flags&1 != 0, flags&2 != 0, r.uvarint()
			if m.Thread <= last { // each once, in order
				return false
			}
			last = m.Thread
			w.marks = append(w.marks, m)
		}
		r.s.batches = append(r.s.batches, w)
	}
	return !r.bad
}

// lane reads the rest of a lane.
func (r *reader) lane(l *lane) bool {
	l.Calls, l.Dropped = r.uvarint(), r.uvarint()
	l.Start, l.End = r.uvarint(), r.uvarint()
	l.current = uint16(r.atMost(reel.MaxStacks - 1))
	before := uint64(0)
	for range r.count(1) {
		before += r.atMost(1<<32 - 1 - before)
		l.tops = append(l.tops, uint32(before))
	}
	stacks := r.count(1)
	if stacks > reel.MaxStacks {
		return false
	}
	for range stacks {
		n := r.atMost(depthMask + 1)
		l.rows = append(l.rows, int32(n))
		l.Rows += int(n)
	}
	if uint64(l.Rows) > r.s.f.Events() || uint64(l.Rows) > l.Calls {
		return false
	}
	at := uint64(0)
	for range r.count(3) {
		g := gap{start: r.near(at)}
		g.end = r.after(g.start)
		g.events = r.uvarint()
		if n := len(l.gaps); n > 0 && (g.start < l.gaps[n-1].start || g.end < l.gaps[n-1].end) {
			return false
		}
		l.gaps = append(l.gaps, g)
		at = g.end
	}
	return r.spans(l) && r.segments(l) && !r.bad
}

func (r *reader) spans(l *lane) bool {
	n := r.count(8)
	l.spans = make([]span, n)
	at := uint64(0)
	for i := range l.spans {
		sp := &l.spans[i]
		sp.start = r.near(at)
		sp.end = r.after(sp.start)
		sp.inside = r.uvarint()
		sp.fn, sp.sp = uint32(r.atMost(1<<32-1)), uint32(r.atMost(1<<32-1))
		sp.around = int32(r.atMost(uint64(i))) - 1
		sp.stack, sp.flags = uint16(r.atMost(reel.MaxStacks-1)), reel.CallFlags(r.atMost(7))
		if sp.around >= 0 {
			around := &l.spans[sp.around]
			sp.depth = around.depth + 1
			if sp.stack != around.stack {
				return false
			}
		}
		if int(sp.stack) >= len(l.rows) || sp.depth >= l.rows[sp.stack] {
			return false
		}
		at = sp.start
	}
	return !r.bad
}

func (r *reader) segments(l *lane) bool {
	n := r.count(10)
	if n == 0 {
		return len(l.spans) == 0 && (r.s.laneOf != nil || len(r.s.f.Chunks(l.Thread)) == 0)
	}
	l.segments = make([]segment, n)
	at, chunk, spans := uint64(0), uint32(0), uint32(0)
	for i := range l.segments {
		seg := &l.segments[i]
		seg.id = r.ids.Add(1)
		seg.start = r.after(at)
		seg.end = r.after(seg.start)
		at = seg.end
		step, events := uint32(r.atMost(1<<31-1)), 0
		if r.s.laneOf != nil {
			chunk += step
			seg.chunk = chunk
			if i > 0 && step == 0 || int(chunk) >= len(r.s.batches) {
				return false
			}
			events = r.s.batches[chunk].events
		} else {
			seg.chunk, seg.chunks = chunk, step
			chunk += step
			ok := false
			if events, ok = r.fits(l.Thread, seg); !ok || step == 0 {
				return false
			}
		}
		seg.events = uint32(r.atMost(uint64(events)))
		seg.firstSpan = spans
		spans += uint32(r.atMost(uint64(len(l.spans)) - uint64(spans)))
		size := r.atMost(uint64(len(r.summaries)))
		seg.summary, r.summaries = r.summaries[:size:size], r.summaries[size:]
		seg.current, seg.floor = uint16(r.atMost(reel.MaxStacks-1)), uint32(r.atMost(1<<32-1))
		seg.stamp, seg.now = r.uvarint(), seg.start+uint64(unzigzag(r.uvarint()))
		if !r.stacks(l, seg) {
			return false
		}
	}
	if r.s.laneOf == nil && int(chunk) != len(r.s.f.Chunks(l.Thread)) {
		return false
	}
	return int(spans) == len(l.spans) && !r.bad
}

// fits says whether a segment's chunks are there, and few enough to be decoded
// at once, and how many events they have at most.
func (r *reader) fits(thread uint32, seg *segment) (events int, ok bool) {
	chunks := r.s.f.Chunks(thread)
	if uint64(seg.chunk)+uint64(seg.chunks) > uint64(len(chunks)) {
		return 0, false
	}
	for _, c := range chunks[seg.chunk : seg.chunk+seg.chunks] {
		events += min(c.Events, c.Bytes)
		if events > segmentEvents && seg.chunks > 1 {
			return 0, false
		}
	}
	return events, true
}

func (r *reader) stacks(l *lane, seg *segment) bool {
	n := r.count(4)
	if n > reel.MaxStacks {
		return false
	}
	if n > 0 {
		seg.stacks = make([]stackTop, n)
	}
	for i := range seg.stacks {
		st := &seg.stacks[i]
		st.sp, st.switched, st.since = uint32(r.atMost(1<<32-1)), r.uvarint(), seg.now+uint64(unzigzag(r.uvarint()))
		st.top = int32(r.atMost(uint64(seg.firstSpan))) - 1
		if st.top >= 0 && int(l.spans[st.top].stack) != i {
			return false
		}
	}
	return !r.bad
}
