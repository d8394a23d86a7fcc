package reel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// Marks of a thread are coded by bits, one after the other:
//
//	marker     one bit if it is the one that followed last time on the marker before; else its place among the last eight, or itself
//	time       since the mark before, in quanta: how many bits it has against what is usual, in unary, and those below the highest
//	goroutine  one bit if it is that of the mark before, else its number; only in Go programs
//
// Their values follow in bytes. So a mark without values takes 2 to 3 bytes. Each chunk decodes by itself.

// markQuantum is the unit of times in the file, in ticks, as a shift: the largest power of two of at most 4 ns.
func markQuantum(ticksPerSecond uint64) uint {
	if ticksPerSecond == 0 {
		ticksPerSecond = 1e9
	}
	most := ticksPerSecond / 250_000_000
	if most < 2 {
		return 0
	}
	return uint(bits.Len64(most)) - 1
}

// markCoder is what writer and reader remember between the marks of a chunk.
type markCoder struct {
	shift      uint
	now        uint64 // quanta
	usual      uint32 // how many bits a time has, in eighths
	marker     uint32 // the last one
	goroutine  uint64
	goroutines bool
	follows    map[uint32]uint32 // what came after each marker
	recent     recent
	numbers    map[valueKey]uint64
	strings    [8][]byte // the last ones, the latest first; what is read shares them
}

// valueKey is an argument of a marker.
type valueKey struct {
	marker   uint32
	argument int
}

// newMarkCoder begins a chunk whose first mark is no earlier than now, in quanta.
func newMarkCoder(shift uint, now uint64, goroutines bool) markCoder {
	return markCoder{shift: shift, now: now, usual: 14 << 3, goroutines: goroutines, follows: map[uint32]uint32{}, numbers: map[valueKey]uint64{}}
}

// maxFollows bounds what is remembered of markers, and of their values.
const maxFollows = 1 << 12

func (c *markCoder) passed(marker uint32) {
	if _, known := c.follows[c.marker]; known || len(c.follows) < maxFollows {
		c.follows[c.marker] = marker
	}
	c.marker = marker
}

// append writes a mark without its values. Time that goes back counts as none.
func (c *markCoder) append(w *bitWriter, m *Mark) {
	if next, known := c.follows[c.marker]; known && next == m.Marker {
		w.put(1, 1)
		c.recent.find(int32(m.Marker))
	} else {
		w.put(0, 1)
		c.recent.append(w, int32(m.Marker))
	}
	c.passed(m.Marker)
	at := max(m.Time>>c.shift, c.now)
	d := at - c.now
	n := bits.Len64(d)
	w.unary(uint(zigzag(uint64(n - int(c.usual+4)>>3))))
	if n > 1 {
		w.wide(d, uint(n-1))
	}
	c.learn(n)
	c.now = at
	if !c.goroutines {
		return
	}
	if m.Goroutine == c.goroutine {
		w.put(1, 1)
		return
	}
	w.put(0, 1)
	w.gamma(m.Goroutine + 1)
	c.goroutine = m.Goroutine
}

func (c *markCoder) learn(n int) {
	u := int32(c.usual)
	c.usual = uint32(u + (int32(n<<3)-u+2)>>2)
}

var errMarkCode = errors.New("a mark is cut off or impossible")

// next reads a mark without its values.
func (c *markCoder) next(r *bitReader, m *Mark) error {
	if r.take(1) == 1 {
		next, known := c.follows[c.marker]
		if !known {
			return errMarkCode
		}
		m.Marker = next
		c.recent.find(int32(next))
	} else {
		m.Marker = uint32(c.recent.take(r))
	}
	c.passed(m.Marker)
	n := int(unzigzag(uint64(r.unary(2*64)))) + int(c.usual+4)>>3
	if n < 0 || n > 64 || r.failed {
		return errMarkCode
	}
	c.learn(n)
	d := uint64(n)
	if n > 1 {
		d = 1<<(n-1) | r.wide(uint(n-1))
	}
	if c.now+d < c.now || c.now+d > 1<<(64-c.shift)-1 {
		return errMarkCode
	}
	c.now += d
	m.Time = c.now << c.shift
	m.Goroutine = 0
	if c.goroutines {
		if r.take(1) == 0 {
			c.goroutine = r.gamma() - 1
		}
		m.Goroutine = c.goroutine
	}
	if r.failed {
		return errMarkCode
	}
	return nil
}

// Values begin with a number whose lower two bits say what follows.
const (
	markDelta  = iota // the rest is the difference to the last value of the argument
	markWide          // eight bytes
	markState         // the rest is a ValueState
	markString        // a bit for Cut, and from that on 0 and length and bytes, or which of the last strings it is, from 1 on
)

// maxMarkString is how much of a string is kept, in bytes.
const maxMarkString = 1 << 10

func (c *markCoder) appendValues(b []byte, m *Mark) []byte {
	for i := range m.Values {
		v := &m.Values[i]
		switch {
		case v.State != ValueKnown:
			b = appendUvarint(b, uint64(v.State)<<2|markState)
		case v.Bytes != nil:
			b = c.appendBytes(b, v)
		default:
			k := valueKey{m.Marker, i}
			d := zigzag(v.Bits - c.numbers[k])
			if d < 1<<55 {
				b = appendUvarint(b, d<<2+markDelta)
			} else {
				b = append(b, markWide)
				b = binary.LittleEndian.AppendUint64(b, v.Bits)
			}
			c.note(k, v.Bits)
		}
	}
	return b
}

func (c *markCoder) note(k valueKey, v uint64) {
	if _, known := c.numbers[k]; known || len(c.numbers) < maxFollows {
		c.numbers[k] = v
	}
}

func (c *markCoder) appendBytes(b []byte, v *Value) []byte {
	text, cut := v.Bytes, v.Cut
	if len(text) > maxMarkString {
		text, cut = text[:maxMarkString], true
	}
	code := uint64(markString)
	if cut {
		code |= 4
	}
	for i := range c.strings {
		if c.strings[i] != nil && bytes.Equal(c.strings[i], text) {
			b = appendUvarint(b, uint64(i+1)<<3|code)
			c.heard(i, c.strings[i])
			return b
		}
	}
	b = appendUvarint(b, code)
	b = appendUvarint(b, uint64(len(text)))
	b = append(b, text...)
	c.heard(len(c.strings)-1, append([]byte{}, text...))
	return b
}

// heard puts a string first that was at a place.
func (c *markCoder) heard(at int, text []byte) {
	copy(c.strings[1:], c.strings[:at])
	c.strings[0] = text
}

// values reads the values of a mark's n arguments.
func (c *markCoder) values(d *fields, m *Mark, n int) error {
	m.Values = m.Values[:0]
	for i := range n {
		code := d.uvarint()
		var v Value
		switch rest := code >> 2; code & 3 {
		case markDelta:
			k := valueKey{m.Marker, i}
			v.Bits = c.numbers[k] + unzigzag(rest)
			c.note(k, v.Bits)
		case markWide:
			if len(d.b) < 8 {
				d.fail()
				break
			}
			v.Bits = binary.LittleEndian.Uint64(d.b)
			d.b = d.b[8:]
			c.note(valueKey{m.Marker, i}, v.Bits)
		case markState:
			if v.State = ValueState(rest); rest != uint64(ValueUnreadable) && rest != uint64(ValueNull) {
				return errMarkCode
			}
		case markString:
			v.Cut = rest&1 != 0
			switch at := rest >> 1; {
			case at == 0:
				text := d.bytes()
				if len(text) > maxMarkString {
					return errMarkCode
				}
				c.heard(len(c.strings)-1, append([]byte{}, text...))
			case at > uint64(len(c.strings)) || c.strings[at-1] == nil:
				return errMarkCode
			default:
				c.heard(int(at-1), c.strings[at-1])
			}
			v.Bytes = c.strings[0]
		}
		if d.err != nil {
			return d.err
		}
		m.Values = append(m.Values, v)
	}
	return nil
}
