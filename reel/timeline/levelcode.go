package timeline

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/callreel/callreel/reel"
)

// The rows of a level are packed one after the other, in order of their stacks
// and depths, in codes (see appendCode):
//
//	row   step<<1 (row of the same stack, step+1 deeper) or
//	      stack step<<1|1, depth (first row of another stack, or of all);
//	      how many bars; the bars
//	bar   head (a byte), and as it says:
//	      bars of the row above (the one before on the same stack) to pass over -3;
//	      start from the end of the bar before, or from the start of the one above,
//	      whichever is later;
//	      duration, or the end of the one above minus its own;
//	      calls-5; duration minus busy; flags; function
//
// and then some zero bytes, so that codes can be read eight bytes at a time.
//
// Callees lie within their callers, mostly a little within, and a function mostly
// calls the same few: so a bar is told by how it differs from that of the row
// above in which it begins, and a function by whether it is the one that came the
// last time within the same.
const (
	headMerged   = 1 << 0 // of several calls
	headFunc     = 1 << 1 // the function follows
	headDuration = 1 << 2 // the duration follows, not the end
	headFlags    = 1 << 3 // flags follow
	headSkip     = 4      // two bits: how many bars to pass over, 3: that follows
	headCalls    = 6      // two bits: calls-2 of a merged bar, 3: that follows
)

// codePad is how many bytes follow the rows: a code begins before them.
const codePad = 9

// guessBits is the size of the table of functions.
const guessBits = 10

// levelCoder packs and unpacks levels. It is one goroutine's.
type levelCoder struct {
	guess [1 << guessBits]uint32
	buf   []byte
	above []bar // of the row above, unpacking
	row   []bar
}

// guessSlot is where the function of a bar is guessed: by that of the bar above,
// and that of the bar before if it is below the same one.
func guessSlot(above, before uint32) uint32 {
	return (above*0x9E3779B1 ^ before*0x85EBCA6B) >> (32 - guessBits)
}

// appendCode appends a number of up to 56 bits, in as few bytes as hold 7 bits
// each; as many zero bits as there are further bytes come before a one. Longer
// ones stand in 8 bytes behind a zero.
func appendCode(b []byte, v uint64) []byte {
	n := (bits.Len64(v|1) + 6) / 7
	if n > 8 {
		return binary.LittleEndian.AppendUint64(append(b, 0), v)
	}
	v = v<<1 | 1
	v <<= n - 1
	if n == 8 {
		return binary.LittleEndian.AppendUint64(b, v)
	}
	for range n {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}

// encode packs the rows of a level of a segment that starts at start. The result
// is valid until the next call.
func (c *levelCoder) encode(l *level, start uint64) []byte {
	clear(c.guess[:])
	b := c.buf[:0]
	stack, depth := -1, 0
	var above []bar
	for _, r := range l.rows {
		if s := r.key.stack(); s != stack {
			b = appendCode(b, uint64(s-stack-1)<<1|1)
			b = appendCode(b, uint64(r.key.depth()))
			stack, above = s, nil
		} else {
			b = appendCode(b, uint64(r.key.depth()-depth-1)<<1)
		}
		depth = r.key.depth()
		b = appendCode(b, uint64(r.to-r.from))
		bars := l.bars[r.from:r.to]
		b = c.encodeRow(b, bars, above, start)
		above = bars
	}
	c.buf = append(b, make([]byte, codePad)...)
	return c.buf
}

func (c *levelCoder) encodeRow(b []byte, bars, above []bar, at uint64) []byte {
	up := -1
	var top bar // above[up], or nothing
	fn := uint32(0)
	for i := range bars {
		x := &bars[i]
		skip := 0
		for up+1 < len(above) && above[up+1].start <= x.start {
			up++
			skip++
		}
		if skip > 0 {
			top, fn = above[up], 0
		}
		head, headAt := byte(min(skip, 3)<<headSkip), len(b)
		b = append(b, 0)
		if skip >= 3 {
			b = appendCode(b, uint64(skip-3))
		}
		b = appendCode(b, x.start-max(at, top.start))
		duration := x.end - x.start
		if x.end <= top.end && top.end-x.end < duration {
			b = appendCode(b, top.end-x.end)
		} else {
			head |= headDuration
			b = appendCode(b, duration)
		}
		if x.calls > 1 {
			head |= headMerged | byte(min(x.calls-2, 3)<<headCalls)
			if x.calls >= 5 {
				b = appendCode(b, uint64(x.calls-5))
			}
			b = appendCode(b, duration-min(x.busy, duration))
		}
		if x.flags != 0 {
			head |= headFlags
			b = append(b, byte(x.flags))
		}
		guess := &c.guess[guessSlot(top.fn, fn)]
		if *guess != x.fn {
			head |= headFunc
			b = appendCode(b, uint64(x.fn))
			*guess = x.fn
		}
		b[headAt] = head
		fn, at = x.fn, x.end
	}
	return b
}

// levelReader goes through the rows of a level.
type levelReader struct {
	c            *levelCoder
	b            []byte
	start        uint64
	most         int
	stack, depth int
	begun        bool
}

// reader returns what reads a level of a segment that starts at start; no row has
// more bars than most.
func (c *levelCoder) reader(body []byte, start uint64, most int) levelReader {
	clear(c.guess[:])
	c.above, c.row = c.above[:0], c.row[:0]
	return levelReader{c: c, b: body, start: start, most: most}
}

// code reads a number; ok is false where there is none.
func (r *levelReader) code() (v uint64, ok bool) {
	v, n := codeAt(r.b, 0)
	if n == 0 {
		return 0, false
	}
	r.b = r.b[n:]
	return v, true
}

// codeAt reads the number at a position and returns the position behind it, 0 if
// there is none.
func codeAt(b []byte, at int) (v uint64, next int) {
	if at > len(b)-codePad {
		return 0, 0
	}
	raw := binary.LittleEndian.Uint64(b[at:])
	n := bits.TrailingZeros64(raw|1<<8) + 1
	if n > 8 {
		return binary.LittleEndian.Uint64(b[at+1:]), at + 9
	}
	return raw >> n & (1<<(7*n) - 1), at + n
}

// next gives the next row; its bars are valid until the call after. Behind the
// last row, and where the level makes no sense, ok is false.
func (r *levelReader) next() (k rowKey, bars []bar, ok bool) {
	if len(r.b) <= codePad {
		return 0, nil, false
	}
	c := r.c
	c.above, c.row = c.row, c.above
	step, ok := r.code()
	switch {
	case !ok || step>>1 > depthMask:
		return 0, nil, false
	case step&1 != 0:
		if !r.begun {
			r.stack = -1
		}
		r.stack += int(step>>1) + 1
		depth, ok := r.code()
		if !ok || depth > depthMask {
			return 0, nil, false
		}
		r.depth, r.begun = int(depth), true
		c.above = c.above[:0]
	case r.begun:
		r.depth += int(step>>1) + 1
	default:
		return 0, nil, false
	}
	n, ok := r.code()
	if !ok || r.stack >= reel.MaxStacks || r.depth > depthMask || n > uint64(min(r.most, len(r.b)/3)) {
		return 0, nil, false
	}
	if !r.decodeRow(int(n)) {
		r.b = nil
		return 0, nil, false
	}
	return keyOf(r.stack, r.depth), c.row, true
}

// decodeRow unpacks the bars of a row.
func (r *levelReader) decodeRow(n int) bool {
	c, b, p := r.c, r.b, 0
	c.row = resize(c.row, n)
	at, above := r.start, c.above
	up := -1
	var top bar
	fn := uint32(0)
	for i := range c.row {
		if p >= len(b) {
			return false
		}
		head := b[p]
		p++
		var v uint64
		if skip := int(head >> headSkip & 3); skip > 0 {
			if skip == 3 {
				if v, p = codeAt(b, p); p == 0 || v > math.MaxInt32 {
					return false
				}
				skip += int(v)
			}
			if up += skip; up >= len(above) {
				return false
			}
			top, fn = above[up], 0
		}
		if v, p = codeAt(b, p); p == 0 {
			return false
		}
		x := &c.row[i]
		x.start = max(at, top.start) + v
		if v, p = codeAt(b, p); p == 0 {
			return false
		}
		if head&headDuration != 0 {
			x.end = x.start + v
		} else {
			x.end = top.end - v
		}
		if x.start < at || x.end < x.start || x.end > maxTime {
			return false
		}
		x.calls, x.busy, x.flags = 1, x.end-x.start, 0
		if head&headMerged != 0 {
			x.calls = uint32(head>>headCalls) + 2
			if x.calls == 5 {
				if v, p = codeAt(b, p); p == 0 || v > math.MaxUint32-5 {
					return false
				}
				x.calls += uint32(v)
			}
			if v, p = codeAt(b, p); p == 0 {
				return false
			}
			x.busy -= min(x.busy, v)
		}
		if head&headFlags != 0 {
			if p >= len(b) || b[p] > 7 {
				return false
			}
			x.flags = reel.CallFlags(b[p])
			p++
		}
		guess := &c.guess[guessSlot(top.fn, fn)]
		if head&headFunc != 0 {
			if v, p = codeAt(b, p); p == 0 || v > math.MaxUint32 {
				return false
			}
			*guess = uint32(v)
		}
		x.fn = *guess
		fn, at = x.fn, x.end
	}
	r.b = b[p:]
	return true
}

// resize makes a list n long. What is in it is to be overwritten.
func resize(list []bar, n int) []bar {
	if cap(list) < n {
		return make([]bar, n, n+n/4)
	}
	return list[:n]
}
