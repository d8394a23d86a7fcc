package timeline

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/callreel/callreel/reel"
)

// The index in a reel is one chunk: the version and the length of the directory
// (uvarints), the CRC-32C of the directory (4 bytes), the directory, and the
// summaries of all segments (see summary.go) in the order of the directory.
// Opening reads the directory only; levels have checksums of their own. The
// directory is of uvarints:
//
//	cellShift; what it was made from (see source)
//	end of the recording; the overview: shift; columns, the time in each
//	batches: how many; events and marks of each
//	lanes: how many; see appendLane
//
// Times are ticks from the recording's start; "from" is the difference to what
// is named, "signed" is zigzagged.
const storeVersion = 3

// Append indexes the reel at path, which w is writing and which nothing is
// appended to any more, and adds the index to it. It is for the recorder, before
// it closes the Writer; an error leaves the reel as it was, but for one of
// writing.
func Append(ctx context.Context, w *reel.Writer, path string, opt Options) error {
	if err := w.Flush(); err != nil {
		return err
	}
	f, err := w.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	t := newTimeline(opt)
	s := t.newSnapshot(f)
	b := &builder{s: s, stored: true, drops: dropsByThread(f), missing: missingByThread(f), ids: &t.ids, opt: t.opt}
	if err := b.build(ctx); err != nil {
		return fmt.Errorf("timeline: indexing %s: %w", path, err)
	}
	for _, l := range s.lanes {
		if l.tops != nil && f.StackTops(l.Thread) == nil {
			if err := w.StackTops(l.Thread, l.tops); err != nil {
				return err
			}
		}
	}
	return w.Timeline(s.pack()...)
}

// source is what an index must agree with the reel on.
func source(f *reel.File) []uint64 {
	chunks, last := 0, int64(0)
	threads := f.Threads()
	for i := range threads {
		list := f.Chunks(threads[i].Key)
		chunks += len(list)
		if n := len(list); n > 0 {
			last = max(last, list[n-1].Offset)
		}
	}
	goroutines := uint64(0)
	if f.Header().Goroutines {
		goroutines = 1
	}
	made := []uint64{uint64(len(threads)), uint64(chunks), uint64(last), f.Events(), uint64(len(f.Drops())), f.FirstTick(), f.LastTick(), goroutines}
	if d, ok := f.Dump(); ok {
		made = append(made, d.From, d.To, uint64(len(d.Missing)))
	}
	return made
}

func zigzag(d int64) uint64 { return uint64(d)<<1 ^ uint64(d>>63) }

func unzigzag(z uint64) int64 { return int64(z>>1) ^ -int64(z&1) }

// pack packs the index, in parts.
func (s *snapshot) pack() [][]byte {
	directory := s.directory()
	var head []byte
	head = binary.AppendUvarint(head, storeVersion)
	head = binary.AppendUvarint(head, uint64(len(directory)))
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(directory, castagnoli))
	parts := [][]byte{head, directory}
	for _, l := range s.lanes {
		for i := range l.segments {
			parts = append(parts, l.segments[i].summary)
		}
	}
	return parts
}

// directory packs all but the summaries.
func (s *snapshot) directory() (b []byte) {
	put := func(values ...uint64) {
		for _, v := range values {
			b = binary.AppendUvarint(b, v)
		}
	}
	put(cellShift)
	put(source(s.f)...)
	c := s.done.clone()
	c.flatten()
	put(s.end, uint64(c.shift))
	used := len(c.busy)
	for used > 0 && c.busy[used-1] == 0 {
		used--
	}
	put(uint64(used))
	put(c.busy[:used]...)
	put(uint64(len(s.batches)))
	for i := range s.batches {
		w := &s.batches[i]
		put(uint64(w.events), uint64(len(w.marks)))
		for _, m := range w.marks {
			flags := uint64(0)
			if m.Known {
				flags |= 1
			}
			if m.Lost {
				flags |= 2
			}
			put(uint64(m.Thread), uint64(m.Chunk), uint64(m.Skip), uint64(m.Next), m.Goroutine, flags, m.Start)
		}
	}
	put(uint64(len(s.lanes)))
	for _, l := range s.lanes {
		b = s.appendLane(b, l)
	}
	return b
}

// appendLane packs a lane:
//
//	thread, goroutine, calls, dropped, start, end (both in ns)
//	stack at the end; tops of stacks; each: from the one before
//	stacks; rows of each
//	gaps; each: start signed from the end of the one before, duration, events
//	spans; each: start signed from that of the one before, duration, inside,
//	       function, SP, span around+1, stack, flags
//	segments; each: start from the end of the one before, duration, chunks (of
//	       goroutines: batch from the one before's), events, spans, length of
//	       the summary, current stack, its floor, stamp, now signed from the
//	       start; stacks; SP, switched, since signed from now, top+1 of each
func (s *snapshot) appendLane(b []byte, l *lane) []byte {
	put := func(values ...uint64) {
		for _, v := range values {
			b = binary.AppendUvarint(b, v)
		}
	}
	put(uint64(l.Thread), l.Goroutine, l.Calls, l.Dropped, l.Start, l.End)
	put(uint64(l.current), uint64(len(l.tops)))
	before := uint32(0)
	for _, sp := range l.tops {
		put(uint64(sp - before))
		before = sp
	}
	put(uint64(len(l.rows)))
	for _, n := range l.rows {
		put(uint64(n))
	}
	put(uint64(len(l.gaps)))
	at := uint64(0)
	for _, g := range l.gaps {
		put(zigzag(int64(g.start-at)), g.end-g.start, g.events)
		at = g.end
	}
	put(uint64(len(l.spans)))
	at = 0
	for i := range l.spans {
		sp := &l.spans[i]
		put(zigzag(int64(sp.start-at)), sp.end-sp.start, sp.inside, uint64(sp.fn), uint64(sp.sp), uint64(sp.around+1), uint64(sp.stack), uint64(sp.flags))
		at = sp.start
	}
	put(uint64(len(l.segments)))
	at = 0
	batch := uint32(0)
	for i := range l.segments {
		seg := &l.segments[i]
		from, to := l.spansOf(i)
		chunks := uint64(seg.chunks)
		if s.batches != nil {
			chunks, batch = uint64(seg.chunk-batch), seg.chunk
		}
		put(seg.start-at, seg.end-seg.start, chunks, uint64(seg.events), uint64(to-from), uint64(len(seg.summary)))
		put(uint64(seg.current), uint64(seg.floor), seg.stamp, zigzag(int64(seg.now-seg.start)), uint64(len(seg.stacks)))
		for _, st := range seg.stacks {
			put(uint64(st.sp), st.switched, zigzag(int64(st.since-seg.now)), uint64(st.top+1))
		}
		at = seg.end
	}
	return b
}
