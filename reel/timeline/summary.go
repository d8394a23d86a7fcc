package timeline

import (
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/callreel/callreel/reel"
)

// A summary of one segment holds levels, each the rows of the segment merged at
// a grain, and the functions called. It is made of uvarints:
//
//	level    grain+1 (0: no more levels), length in bytes of what follows; its rows
//	row      step<<1 (row of the same stack, step+1 deeper) or
//	         stack step<<1|1, depth (first row of another stack, or of all);
//	         bars; length in bytes of what follows; its bars
//	bar      start minus the end of the one before (of the segment's start);
//	         (calls-1)<<2 | flags follow<<1 | function is that of the one before;
//	         duration; if calls > 1, duration minus busy;
//	         flags; function
//
// Then come how many functions were called, and for each its ID minus the ID
// before and how many calls of it began in the segment.
const (
	// levelStep is the ratio of grains of successive levels, as a power of two.
	levelStep = 2
	// fineShift and coarseShift say what part of a segment's duration the finest
	// and the coarsest grain are, as powers of two, rounded down.
	fineShift   = 10
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

// finestGrain is the grain of the finest level of a segment.
func finestGrain(duration uint64, shift int) uint {
	return uint(min(maxGrain, max(0, bits.Len64(duration)-1-shift)))
}

// levelOf merges sorted calls.
func levelOf(dst *level, grain uint, calls []call, rows []rowRange) {
	dst.grain, dst.rows = grain, dst.rows[:0]
	m := merger{grain: grain, out: dst.bars[:0]}
	for _, r := range rows {
		from := uint32(len(m.out))
		m.next()
		m.addCalls(calls[r.from:r.to])
		dst.rows = append(dst.rows, levelRow{r.key, from, uint32(len(m.out))})
	}
	dst.bars = m.out
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

// appendLevel packs a level of a segment that starts at start.
func appendLevel(b []byte, l *level, start uint64, scratch []byte) (packed, scratchOut []byte) {
	body := scratch[:0]
	stack, depth := -1, 0
	for _, r := range l.rows {
		if s := r.key.stack(); s != stack {
			body = binary.AppendUvarint(body, uint64(s-stack-1)<<1|1)
			body = binary.AppendUvarint(body, uint64(r.key.depth()))
			stack = s
		} else {
			body = binary.AppendUvarint(body, uint64(r.key.depth()-depth-1)<<1)
		}
		depth = r.key.depth()
		body = binary.AppendUvarint(body, uint64(r.to-r.from))
		at := len(body)
		body = append(body, 0, 0, 0) // the length, mostly below 2^21
		body = appendBars(body, l.bars[r.from:r.to], start)
		n := len(body) - at - 3
		if n < 1<<21 {
			body[at], body[at+1], body[at+2] = byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)
			continue
		}
		rest := append([]byte(nil), body[at+3:]...)
		body = append(binary.AppendUvarint(body[:at], uint64(n)), rest...)
	}
	b = binary.AppendUvarint(b, uint64(l.grain)+1)
	b = binary.AppendUvarint(b, uint64(len(body)))
	return append(b, body...), body
}

func appendBars(b []byte, bars []bar, at uint64) []byte {
	fn := uint32(0)
	for i := range bars {
		x := &bars[i]
		b = binary.AppendUvarint(b, x.start-at)
		head := uint64(x.calls-1) << 2
		if x.flags != 0 {
			head |= 2
		}
		if x.fn == fn {
			head |= 1
		}
		b = binary.AppendUvarint(b, head)
		b = binary.AppendUvarint(b, x.end-x.start)
		if x.calls > 1 {
			b = binary.AppendUvarint(b, x.end-x.start-min(x.busy, x.end-x.start))
		}
		if x.flags != 0 {
			b = append(b, byte(x.flags))
		}
		if x.fn != fn {
			b = binary.AppendUvarint(b, uint64(x.fn))
		}
		fn, at = x.fn, x.end
	}
	return b
}

var errBlock = errors.New("a summary in the index is damaged")

// wire reads uvarints. The first error sticks, and everything after it is 0.
type wire struct {
	b   []byte
	bad bool
}

func (w *wire) uvarint() uint64 {
	if len(w.b) > 0 && w.b[0] < 0x80 {
		v := w.b[0]
		w.b = w.b[1:]
		return uint64(v)
	}
	return w.long()
}

func (w *wire) long() uint64 {
	v, n := binary.Uvarint(w.b)
	if n <= 0 {
		w.fail()
		return 0
	}
	w.b = w.b[n:]
	return v
}

func (w *wire) fail() { w.b, w.bad = nil, true }

// atMost is a number no larger than limit.
func (w *wire) atMost(limit uint64) uint64 {
	v := w.uvarint()
	if v > limit {
		w.fail()
		return 0
	}
	return v
}

// bytes is a length and so many bytes.
func (w *wire) bytes() []byte {
	n := w.uvarint()
	if n > uint64(len(w.b)) {
		w.fail()
		return nil
	}
	v := w.b[:n:n]
	w.b = w.b[n:]
	return v
}

// pickLevel finds in a summary the level with the largest grain that is at most
// grain; nil if there is none.
func pickLevel(summary []byte, most uint) (rows []byte, grain uint, err error) {
	err = eachLevel(summary, func(g uint, body []byte) {
		if g <= most && (rows == nil || g > grain) {
			rows, grain = body, g
		}
	})
	return rows, grain, err
}

// finestLevel finds the level with the smallest grain; nil if there is none.
func finestLevel(summary []byte) (rows []byte, grain uint) {
	err := eachLevel(summary, func(g uint, body []byte) {
		if rows == nil || g < grain {
			rows, grain = body, g
		}
	})
	if err != nil {
		return nil, 0
	}
	return rows, grain
}

func eachLevel(summary []byte, do func(grain uint, rows []byte)) error {
	w := wire{b: summary}
	for {
		g := w.atMost(maxGrain + 1)
		if g == 0 {
			break
		}
		if body := w.bytes(); !w.bad {
			do(uint(g-1), body)
		}
	}
	if w.bad {
		return errBlock
	}
	return nil
}

// rowReader goes through the rows of a level.
type rowReader struct {
	w            wire
	stack, depth int
	begun        bool
}

// next gives the next row's key and how many bars it has in how many bytes.
func (r *rowReader) next() (k rowKey, bars int, body []byte, ok bool) {
	if len(r.w.b) == 0 {
		return 0, 0, nil, false
	}
	step := r.w.uvarint()
	switch {
	case step&1 != 0 && step>>1 < 256:
		if !r.begun {
			r.stack = -1
		}
		r.stack += int(step>>1) + 1
		r.depth = int(r.w.atMost(depthMask))
		r.begun = true
	case r.begun && step>>1 <= depthMask:
		r.depth += int(step>>1) + 1
	default:
		r.w.fail()
	}
	n := r.w.uvarint()
	body = r.w.bytes()
	if r.stack > 255 || r.depth > depthMask || n > uint64(len(body)) {
		r.w.fail()
	}
	if r.w.bad {
		return 0, 0, nil, false
	}
	return keyOf(r.stack, r.depth), int(n), body, true
}

// barReader goes through the bars of a row.
type barReader struct {
	w    wire
	left int
	at   uint64
	fn   uint32
}

// next reads a bar; ok is false at the end, and where it makes no sense.
func (r *barReader) next(b *bar) (ok bool) {
	if r.left == 0 {
		return false
	}
	r.left--
	w := &r.w
	b.start = r.at + w.uvarint()
	head := w.uvarint()
	b.end = b.start + w.uvarint()
	b.calls = uint32(head>>2) + 1
	b.busy = b.end - b.start
	if b.calls > 1 {
		b.busy -= min(b.busy, w.uvarint())
	}
	b.flags = 0
	if head&2 != 0 {
		b.flags = reel.CallFlags(w.atMost(7))
	}
	if head&1 == 0 {
		r.fn = uint32(w.atMost(1<<32 - 1))
	}
	b.fn = r.fn
	if b.start < r.at || b.end < b.start || b.calls == 0 || head>>34 != 0 {
		w.fail()
	}
	r.at = b.end
	if w.bad {
		r.left = 0
	}
	return !w.bad
}

// eachFunction goes through the functions called in a segment and how many calls
// of each began in it, in order of their IDs, until yield returns false.
func eachFunction(summary []byte, yield func(fn, calls uint32) bool) error {
	w := wire{b: summary}
	for !w.bad && w.atMost(maxGrain+1) != 0 {
		w.bytes()
	}
	last := uint64(0)
	for n := w.atMost(uint64(len(w.b))); n > 0 && !w.bad; n-- {
		last += w.atMost(1<<32 - 1 - last)
		calls := w.atMost(1<<32 - 1)
		if !w.bad && !yield(uint32(last), uint32(calls)) {
			return nil
		}
	}
	if w.bad {
		return errBlock
	}
	return nil
}
