package timeline

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"
)

// A summary of one segment has parts, the functions called and levels, each the
// rows of the segment merged at a grain:
//
//	part       tag (a byte: 0 functions, else grain+1), length in bytes (uvarint),
//	           CRC-32C of tag and body (4 bytes); the body
//	functions  how many were called; for each its ID minus the ID before, and how
//	           many calls of it began in the segment (uvarints)
//	level      see levelcode.go
const (
	// levelStep is the ratio of grains of successive levels, as a power of two.
	levelStep = 3
	// fineShift and coarseShift say what part of a segment's duration the finest
	// and the coarsest grain are at least and at most, as powers of two.
	fineShift   = 12
	coarseShift = 2
)

// maxGrain keeps shifts by a grain and cellShift below 64.
const maxGrain = 63 - cellShift

// level is a summary of a segment that was unpacked, or is to be packed.
type level struct {
	grain uint
	rows  []levelRow
	bars  []bar
}

type levelRow struct {
	key      rowKey
	from, to uint32
}

// grainOfPart is the grain of a part of a duration, 1 in 1<<shift.
func grainOfPart(duration uint64, shift int) uint {
	return uint(min(maxGrain, max(0, bits.Len64(duration)-1-shift)))
}

// coarser merges a level further.
func coarser(dst, src *level, grain uint) {
	dst.grain, dst.rows = grain, dst.rows[:0]
	m := merger{grain: grain, out: dst.bars[:0]}
	for _, r := range src.rows {
		from := uint32(len(m.out))
		m.next()
		for i := r.from; i < r.to; i++ {
			m.add(&src.bars[i])
		}
		dst.rows = append(dst.rows, levelRow{r.key, from, uint32(len(m.out))})
	}
	dst.bars = m.out
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendPart packs a part of a summary.
func appendPart(b []byte, tag byte, body []byte) []byte {
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(len(body)))
	b = binary.LittleEndian.AppendUint32(b, partSum(tag, body))
	return append(b, body...)
}

func partSum(tag byte, body []byte) uint32 {
	return crc32.Update(crc32.Checksum([]byte{tag}, castagnoli), castagnoli, body)
}

// summaryPart is a part as it stands there.
type summaryPart struct {
	tag  byte
	sum  uint32
	body []byte
}

// checked is what is in the part, nil if it is damaged.
func (p *summaryPart) checked() []byte {
	if p.body == nil || partSum(p.tag, p.body) != p.sum {
		return nil
	}
	return p.body
}

// nextPart takes the next part off a summary; ok is false where there is none.
func nextPart(summary *[]byte) (p summaryPart, ok bool) {
	w := wire{b: *summary}
	if len(w.b) == 0 {
		return p, false
	}
	p.tag, w.b = w.b[0], w.b[1:]
	n := w.uvarint()
	if w.bad || p.tag > maxGrain+1 || len(w.b) < 4 || n > uint64(len(w.b)-4) {
		*summary = nil
		return p, false
	}
	p.sum, p.body = binary.LittleEndian.Uint32(w.b), w.b[4:4+n]
	*summary = w.b[4+n:]
	return p, true
}

// pickLevel finds in a summary the level with the largest grain that is at most
// grain; nil if there is none, or it is damaged.
func pickLevel(summary []byte, most uint) []byte {
	var pick summaryPart
	for p, ok := nextPart(&summary); ok; p, ok = nextPart(&summary) {
		if p.tag > pick.tag && uint(p.tag) <= most+1 {
			pick = p
		}
	}
	return pick.checked()
}

// finestLevel finds the level with the smallest grain; nil if there is none, or
// it is damaged.
func finestLevel(summary []byte) (rows []byte, grain uint) {
	pick := summaryPart{tag: math.MaxUint8}
	for p, ok := nextPart(&summary); ok; p, ok = nextPart(&summary) {
		if p.tag > 0 && p.tag < pick.tag {
			pick = p
		}
	}
	return pick.checked(), uint(pick.tag) - 1
}
