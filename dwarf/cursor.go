package dwarf

import (
	"bytes"
	"encoding/binary"

	"github.com/callreel/callreel/internal/leb128"
)

// cursor reads numbers from bytes. A read past the end gives 0 and sets bad, which
// stays set, so that callers may check once for several reads.
type cursor struct {
	data []byte
	at   int
	big  bool
	bad  bool
}

func (c *cursor) remaining() int { return len(c.data) - c.at }

// take returns the next n bytes, nil when there are fewer.
func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(c.remaining()) {
		c.bad = true
		return nil
	}
	b := c.data[c.at : c.at+int(n)]
	c.at += int(n)
	return b
}

func (c *cursor) u8() uint8 {
	if c.bad || c.at >= len(c.data) {
		c.bad = true
		return 0
	}
	v := c.data[c.at]
	c.at++
	return v
}

func (c *cursor) u16() uint16 { return uint16(c.fixed(2)) }
func (c *cursor) u32() uint32 { return uint32(c.fixed(4)) }
func (c *cursor) u64() uint64 { return c.fixed(8) }

// fixed reads an unsigned number of 1, 2, 3, 4 or 8 bytes; any other size is bad.
func (c *cursor) fixed(size int) uint64 {
	b := c.take(uint64(size))
	if c.bad {
		return 0
	}
	v, ok := fixed(b, size, c.big)
	c.bad = !ok
	return v
}

// uleb reads an unsigned LEB128 (DWARF 5 §7.6), cut to 64 bits.
func (c *cursor) uleb() uint64 {
	v, at := leb128.Uint(c.data, c.at)
	if c.bad || at < 0 {
		c.bad = true
		return 0
	}
	c.at = at
	return v
}

// sleb reads a signed LEB128, cut to 64 bits.
func (c *cursor) sleb() int64 {
	v, at := leb128.Int(c.data, c.at)
	if c.bad || at < 0 {
		c.bad = true
		return 0
	}
	c.at = at
	return v
}

// text steps over a NUL-terminated string and returns where it starts and its
// length.
func (c *cursor) text() (start, n int) {
	if c.bad {
		return 0, 0
	}
	n = bytes.IndexByte(c.data[c.at:], 0)
	if n < 0 {
		c.bad = true
		return 0, 0
	}
	start = c.at
	c.at += n + 1
	return start, n
}

// initialLength reads a unit's length, which also tells the format (DWARF 5 §7.4):
// offset is the size of an offset, 4 or 8.
func (c *cursor) initialLength() (n uint64, offset int) {
	const escape64, firstReserved = 0xffffffff, 0xfffffff0
	n = uint64(c.u32())
	if n < firstReserved {
		return n, 4
	}
	if n != escape64 {
		c.bad = true
	}
	return c.u64(), 8
}

// fixed reads size bytes of b as an unsigned number. It is false for a size that
// no number has, or when b is too short.
func fixed(b []byte, size int, big bool) (uint64, bool) {
	if len(b) < size {
		return 0, false
	}
	if big {
		switch size {
		case 1:
			return uint64(b[0]), true
		case 2:
			return uint64(binary.BigEndian.Uint16(b)), true
		case 3:
			return uint64(b[0])<<16 | uint64(b[1])<<8 | uint64(b[2]), true
		case 4:
			return uint64(binary.BigEndian.Uint32(b)), true
		case 8:
			return binary.BigEndian.Uint64(b), true
		}
		return 0, false
	}
	switch size {
	case 1:
		return uint64(b[0]), true
	case 2:
		return uint64(binary.LittleEndian.Uint16(b)), true
	case 3:
		return uint64(b[2])<<16 | uint64(b[1])<<8 | uint64(b[0]), true
	case 4:
		return uint64(binary.LittleEndian.Uint32(b)), true
	case 8:
		return binary.LittleEndian.Uint64(b), true
	}
	return 0, false
}
