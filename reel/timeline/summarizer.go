package timeline

import (
	"encoding/binary"
	"slices"
)

// summarizer makes the blocks of segments. It is one worker's.
type summarizer struct {
	sorted  []call
	fine    level
	other   [2]level
	small   int
	coarse  []byte
	packed  []byte
	rows    []byte
	counts  []uint32 // calls by function, of those in the table
	more    map[uint32]uint32
	touched []uint32
}

// begun are the functions whose calls began in the segment.
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

// smallSegment is how many calls are decoded so quickly that summaries of them
// aren't worth their room.
const smallSegment = 1 << 10

// blocks packs the calls of a segment; fine may be empty. What it returns is
// valid until the next call.
func (z *summarizer) blocks(seg *segment, calls []call, rows []rowRange) (coarse, fine []byte) {
	z.coarse, z.packed = z.coarse[:0], z.packed[:0]
	if len(calls) > z.small {
		z.levels(seg, calls, rows)
	}
	z.coarse = z.appendFunctions(append(z.coarse, 0))
	return z.coarse, z.packed
}

// levels packs the levels.
func (z *summarizer) levels(seg *segment, calls []call, rows []rowRange) {
	duration := seg.end - seg.start
	grain := finestGrain(duration, fineShift)
	last := finestGrain(duration, coarsestShift)
	split := finestGrain(duration, coarseShift)
	levelOf(&z.fine, grain, calls, rows)
	src := &z.fine
	for i := 0; ; i++ {
		// A summary that is about as large as what it sums up is of no use.
		switch {
		case grain < split && len(src.bars) <= len(calls)/minRatio:
			z.packed, z.rows = appendLevel(z.packed, src, seg.start, z.rows)
		case grain >= split && len(src.bars) <= len(calls)/2:
			z.coarse, z.rows = appendLevel(z.coarse, src, seg.start, z.rows)
		}
		if grain+levelStep > last {
			return
		}
		grain += levelStep
		coarser(&z.other[i%2], src, grain)
		src = &z.other[i%2]
	}
}

// minRatio is how many calls a bar of a fine level must stand for on average.
const minRatio = 6
