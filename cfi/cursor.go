package cfi

import "encoding/binary"

// cursor reads numbers from bytes. A read that fails returns false and leaves the
// cursor anywhere; what was being read is then given up.
type cursor struct {
	data  []byte
	at    int
	order binary.ByteOrder
}

func (c *cursor) left() int { return len(c.data) - c.at }

func (c *cursor) u8() (uint8, bool) {
	if c.left() < 1 {
		return 0, false
	}
	v := c.data[c.at]
	c.at++
	return v, true
}

func (c *cursor) u16() (uint16, bool) {
	if c.left() < 2 {
		return 0, false
	}
	v := c.order.Uint16(c.data[c.at:])
	c.at += 2
	return v, true
}

func (c *cursor) u32() (uint32, bool) {
	if c.left() < 4 {
		return 0, false
	}
	v := c.order.Uint32(c.data[c.at:])
	c.at += 4
	return v, true
}

func (c *cursor) u64() (uint64, bool) {
	if c.left() < 8 {
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
	var v uint64
	for shift := uint(0); c.at < len(c.data); shift += 7 {
		b := c.data[c.at]
		c.at++
		low := uint64(b & 0x7f)
		if shift >= 64 && low != 0 || shift == 63 && low > 1 {
			return 0, false
		}
		if shift < 64 {
			v |= low << shift
		}
		if b < 0x80 {
			return v, true
		}
	}
	return 0, false
}

// sleb reads a signed LEB128. Bytes behind the 64th bit may only repeat the sign.
func (c *cursor) sleb() (int64, bool) {
	var v int64
	for shift := uint(0); c.at < len(c.data); shift += 7 {
		b := c.data[c.at]
		c.at++
		low := int64(b & 0x7f)
		switch {
		case shift < 63:
			v |= low << shift
		case shift == 63:
			if low != 0 && low != 0x7f {
				return 0, false
			}
			v |= low << 63
		case low != v>>63&0x7f:
			return 0, false
		}
		if b < 0x80 {
			if shift < 57 && b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v, true
		}
	}
	return 0, false
}

// bytes takes the next n bytes.
func (c *cursor) bytes(n uint64) ([]byte, bool) {
	if n > uint64(c.left()) {
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
