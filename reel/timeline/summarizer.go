package timeline

import (
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/reel"
)

// summarizer makes the summaries of segments from their calls. It is one worker's.
type summarizer struct {
	rows      rowMergers
	outer     []interval // the calls at depth 0
	between   level
	levels    []level
	coder     levelCoder
	share     int  // as one in so many, the part of a segment's bytes for its levels
	small     int  // calls of a segment without levels
	strict    bool // even the coarsest level must keep to its share
	packed    []byte
	functions []byte
	counts    []uint32 // calls by function, of those in the table
	more      map[uint32]uint32
	touched   []uint32
}

// count notes that a call of the function began in the segment.
func (z *summarizer) count(fn uint32) {
	if int(fn) >= len(z.counts) {
		if z.more == nil {
			z.more = map[uint32]uint32{}
		}
		if z.more[fn]++; z.more[fn] == 1 {
			z.touched = append(z.touched, fn)
		}
		return
	}
	if z.counts[fn]++; z.counts[fn] == 1 {
		z.touched = append(z.touched, fn)
	}
}

// appendFunctions packs the functions counted, and forgets them.
func (z *summarizer) appendFunctions(b []byte) []byte {
	slices.Sort(z.touched)
	b = binary.AppendUvarint(b, uint64(len(z.touched)))
	last := uint32(0)
	for _, fn := range z.touched {
		n := z.more[fn]
		if int(fn) < len(z.counts) {
			n = z.counts[fn]
			z.counts[fn] = 0
		}
		b = binary.AppendUvarint(b, uint64(fn-last))
		b = binary.AppendUvarint(b, uint64(n))
		last = fn
	}
	z.touched = z.touched[:0]
	clear(z.more)
	return b
}

const (
	// smallSegment is how many calls are decoded so quickly that summaries of
	// them aren't worth their room.
	smallSegment = 1 << 10
	// maxShare is the part of a segment's bytes that its levels may take, as one in
	// so many. The coarsest may take all of it.
	maxShare = 3
	// minRatio is how many calls a bar must stand for on average.
	minRatio = 2
)

// begin makes the summarizer ready for a segment; finest is the finest grain that
// a level is wanted of.
func (z *summarizer) begin(finest uint) { z.rows.begin(min(finest, maxGrain)) }

// take takes the next call that ended in the segment.
func (z *summarizer) take(c *reel.Call, first uint64) {
	start, end := c.Start-min(first, c.Start), c.End-min(first, c.End)
	z.rows.add(c, start, end)
	if c.Stack == 0 && c.Depth == 0 {
		z.outer = append(z.outer, interval{start, end})
	}
	z.count(c.Func)
}

// takeCalls takes calls in order of their ends.
func (z *summarizer) takeCalls(calls []call) {
	var x reel.Call
	for i := range calls {
		c := &calls[i]
		x.Stack, x.Depth, x.Func, x.Start, x.End, x.Flags = c.key().stack(), c.key().depth(), c.fn, c.start, c.end, c.flags()
		z.take(&x, 0)
	}
}

// summary packs what the index keeps of a segment of so many bytes: functions,
// and levels, the coarse ones first, as far as there is room. It is valid until
// the next call.
func (z *summarizer) summary(seg *segment, bytes int) []byte {
	z.functions = z.appendFunctions(z.functions[:0])
	z.packed = appendPart(z.packed[:0], 0, z.functions)
	if z.rows.calls <= z.small {
		return z.packed
	}
	most, share := len(z.packed)+bytes/z.share, bytes/z.share
	if !z.strict {
		share = bytes // for the coarsest
	}
	z.merge(seg)
	for i := len(z.levels) - 1; i >= 0; i-- {
		if !z.add(&z.levels[i], seg.start, len(z.packed)+share) {
			if i == 0 && len(z.levels) > 1 {
				z.addNext(seg.start, most)
			}
			break
		}
		share = most - len(z.packed)
	}
	return z.packed
}

// add packs a level if it is no longer than most then.
func (z *summarizer) add(l *level, start uint64, most int) bool {
	if len(l.bars) > z.rows.calls/minRatio {
		return false
	}
	n := len(z.packed)
	z.packed = appendPart(z.packed, byte(l.grain+1), z.coder.encode(l, start))
	if len(z.packed) > most {
		z.packed = z.packed[:n]
		return false
	}
	return true
}

// addNext packs the finest level that there is room for, of those between the
// finest and the second.
func (z *summarizer) addNext(start uint64, most int) {
	for grain := z.levels[0].grain + 1; grain < z.levels[1].grain; grain++ {
		coarser(&z.between, &z.levels[0], grain)
		if z.add(&z.between, start, most) {
			return
		}
	}
}

// merge makes the levels, the finest first.
func (z *summarizer) merge(seg *segment) {
	grain := z.rows.grain
	last := grainOfPart(seg.end-seg.start, coarseShift)
	n := 1 + max(0, int(last)-int(grain))/levelStep
	for z.levels = z.levels[:cap(z.levels)]; len(z.levels) < n; {
		z.levels = append(z.levels, level{})
	}
	z.rows.level(&z.levels[0])
	for i := 1; i < n; i++ {
		grain += levelStep
		coarser(&z.levels[i], &z.levels[i-1], grain)
	}
	z.levels = z.levels[:n]
}
