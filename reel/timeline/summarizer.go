package timeline

import (
	"encoding/binary"
	"slices"
)

// summarizer makes the summaries of segments. It is one worker's.
type summarizer struct {
	sorted  []call
	levels  []level
	small   int
	packed  []byte
	rows    []byte
	counts  []uint32 // calls by function, of those in the table
	more    map[uint32]uint32
	touched []uint32
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
	// maxShare is the part of a segment's bytes that its summaries may take, as
	// one in so many. The coarsest may take more.
	maxShare = 20
	// minRatio is how many calls a bar must stand for on average.
	minRatio = 2
)

// summary packs what the index keeps of a segment of so many bytes: functions,
// and levels, the coarse ones first, as far as there is room. It is valid until
// the next call.
func (z *summarizer) summary(seg *segment, calls []call, rows []rowRange, bytes int) []byte {
	z.packed = z.packed[:0]
	if len(calls) > z.small {
		z.merge(seg, calls, rows)
		for i := len(z.levels) - 1; i >= 0; i-- {
			l := &z.levels[i]
			n := len(z.packed)
			if len(l.bars) > len(calls)/minRatio {
				break
			}
			z.packed, z.rows = appendLevel(z.packed, l, seg.start, z.rows)
			if len(z.packed) > bytes/maxShare && n > 0 {
				z.packed = z.packed[:n]
				break
			}
		}
	}
	return z.appendFunctions(append(z.packed, 0))
}

// fineLevels packs all levels of a segment, for the cache.
func (z *summarizer) fineLevels(seg *segment, calls []call, rows []rowRange) []byte {
	z.merge(seg, calls, rows)
	var b []byte
	for i := range z.levels {
		b, z.rows = appendLevel(b, &z.levels[i], seg.start, z.rows)
	}
	return append(b, 0)
}

// merge makes the levels, the finest first.
func (z *summarizer) merge(seg *segment, calls []call, rows []rowRange) {
	grain := finestGrain(seg.end-seg.start, fineShift)
	last := finestGrain(seg.end-seg.start, coarseShift)
	if z.levels == nil {
		z.levels = make([]level, (fineShift-coarseShift)/levelStep+1)
	}
	z.levels = z.levels[:cap(z.levels)]
	levelOf(&z.levels[0], grain, calls, rows)
	n := 1
	for ; n < len(z.levels) && grain+levelStep <= last; n++ {
		grain += levelStep
		coarser(&z.levels[n], &z.levels[n-1], grain)
	}
	z.levels = z.levels[:n]
}
