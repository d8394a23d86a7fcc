package cfi

import (
	"encoding/binary"

	"github.com/callreel/callreel/internal/ehtable"
	"github.com/callreel/callreel/internal/leb128"
)

// cursor reads numbers from bytes. A read that fails returns false and leaves the
// cursor anywhere; what was being read is then given up.
type cursor struct {
	data  []byte
	at    int
	order binary.ByteOrder
}

func (c *cursor) remaining() int { return len(c.data) - c.at }

func (c *cursor) u8() (uint8, bool) {
	if c.remaining() < 1 {
		return 0, false
	}
	v := c.data[c.at]
	c.at++
	return v, true
}

func (c *cursor) u16() (uint16, bool) {
	if c.remaining() < 2 {
		return 0, false
	}
	v := c.order.Uint16(c.data[c.at:])
	c.at += 2
	return v, true
}

func (c *cursor) u32() (uint32, bool) {
	if c.remaining() < 4 {
		return 0, false
	}
	v := c.order.Uint32(c.data[c.at:])
	c.at += 4
	return v, true
}

func (c *cursor) u64() (uint64, bool) {
	if c.remaining() < 8 {
		return 0, false
	}
	v := c.order.Uint64(c.data[c.at:])
	c.at += 8
	return v, true
}

// fixed reads an unsigned number of 1, 2, 4 or 8 bytes.
func (c *cursor) fixed(size int) (uint64, bool) {
	switch size {
	case 1:
		v, ok := c.u8()
		return uint64(v), ok
	case 2:
		v, ok := c.u16()
		return uint64(v), ok
	}
	return c.word(size)
}

// word reads an unsigned number of 4 or 8 bytes.
func (c *cursor) word(size int) (uint64, bool) {
	if size == 4 {
		v, ok := c.u32()
		return uint64(v), ok
	}
	return c.u64()
}

// uleb reads an unsigned LEB128 (DWARF 5 §7.6). Values over 64 bits are refused;
// zero padding is not, since assemblers use it.
func (c *cursor) uleb() (uint64, bool) {
	v, end := leb128.ExactUint(c.data, c.at)
	if end < 0 {
		return 0, false
	}
	c.at = end
	return v, true
}

// sleb reads a signed LEB128. Bytes behind the 64th bit may only repeat the sign.
func (c *cursor) sleb() (int64, bool) {
	v, end := leb128.ExactInt(c.data, c.at)
	if end < 0 {
		return 0, false
	}
	c.at = end
	return v, true
}

// pointer reads an encoded pointer; see ehtable.Bases.
func (c *cursor) pointer(enc ehtable.Encoding, b *ehtable.Bases) (uint64, bool) {
	v, end := b.Pointer(c.data, c.at, c.order, enc)
	if end < 0 {
		return 0, false
	}
	c.at = end
	return v, true
}

// value reads what a pointer of a format is before it is relative to anything.
func (c *cursor) value(format ehtable.Encoding, size int) (uint64, bool) {
	v, end := ehtable.Value(c.data, c.at, c.order, format, size)
	if end < 0 {
		return 0, false
	}
	c.at = end
	return v, true
}

func (c *cursor) encoding() (ehtable.Encoding, bool) {
	v, ok := c.u8()
	return ehtable.Encoding(v), ok
}

// bytes takes the next n bytes.
func (c *cursor) bytes(n uint64) ([]byte, bool) {
	if n > uint64(c.remaining()) {
		return nil, false
	}
	b := c.data[c.at : c.at+int(n) : c.at+int(n)]
	c.at += int(n)
	return b, true
}

// text takes a NUL-terminated string.
func (c *cursor) text() (string, bool) {
	for k := c.at; k < len(c.data); k++ {
		if c.data[k] == 0 {
			s := string(c.data[c.at:k])
			c.at = k + 1
			return s, true
		}
	}
	return "", false
}
