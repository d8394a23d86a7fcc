package ehtable

import (
	"encoding/binary"

	"github.com/callreel/callreel/internal/leb128"
)

// Encoding says how a pointer is written: the low four bits are the format, the next three what the value is relative
// to, the highest says that the pointer is the address of the value.
type Encoding byte

// The formats.
const (
	AbsPtr Encoding = 0x00
	ULEB   Encoding = 0x01
	UData2 Encoding = 0x02
	UData4 Encoding = 0x03
	UData8 Encoding = 0x04
	Signed Encoding = 0x08 // signed, of the size of an address
	SLEB   Encoding = 0x09
	SData2 Encoding = 0x0a
	SData4 Encoding = 0x0b
	SData8 Encoding = 0x0c
)

// What a value is relative to, and the rest.
const (
	PCRel    Encoding = 0x10
	TextRel  Encoding = 0x20
	DataRel  Encoding = 0x30
	FuncRel  Encoding = 0x40
	Aligned  Encoding = 0x50 // absolute, at the next multiple of the size of an address
	Indirect Encoding = 0x80

	Omit Encoding = 0xff // there is no pointer
)

// Format is the format alone.
func (e Encoding) Format() Encoding { return e & 0x0f }

// Relation is only what the value is relative to, 0 for nothing.
func (e Encoding) Relation() Encoding { return e & 0x70 }

// Bases is what pointers in some bytes are relative to.
type Bases struct {
	Section  uint64 // address of the first byte
	Text     uint64
	Data     uint64
	Function uint64
	Size     int // of an address: 4 or 8
}

// Pointer reads the pointer at data[at] and returns where it ends, -1 when it cannot be read. A raw value of 0 means
// "none" whatever it is relative to. Indirect is left to the caller.
func (b *Bases) Pointer(data []byte, at int, order binary.ByteOrder, enc Encoding) (v uint64, end int) {
	if at < 0 || at > len(data) {
		return 0, -1
	}
	place := b.Section + uint64(at)
	if enc.Relation() == Aligned {
		at += int(-place & uint64(b.Size-1))
		return fixed(data, at, order, b.Size)
	}
	if v, end = Value(data, at, order, enc.Format(), b.Size); end < 0 || v == 0 {
		return 0, end
	}
	switch enc.Relation() {
	case 0:
	case PCRel:
		v += place
	case TextRel:
		v += b.Text
	case DataRel:
		v += b.Data
	case FuncRel:
		v += b.Function
	default:
		return 0, -1
	}
	if b.Size == 4 {
		v = uint64(uint32(v))
	}
	return v, end
}

// Value reads a value of the given format at data[at], sign-extended to 64 bits, and returns where it ends, -1 when it
// cannot be read; size is that of an address, 4 or 8.
func Value(data []byte, at int, order binary.ByteOrder, format Encoding, size int) (v uint64, end int) {
	switch format {
	case AbsPtr:
		return fixed(data, at, order, size)
	case Signed:
		if v, end = fixed(data, at, order, size); size == 4 {
			v = uint64(int32(v))
		}
		return v, end
	case ULEB:
		return leb128.ExactUint(data, at)
	case SLEB:
		s, end := leb128.ExactInt(data, at)
		return uint64(s), end
	case UData2:
		return fixed(data, at, order, 2)
	case SData2:
		v, end = fixed(data, at, order, 2)
		return uint64(int16(v)), end
	case UData4:
		return fixed(data, at, order, 4)
	case SData4:
		v, end = fixed(data, at, order, 4)
		return uint64(int32(v)), end
	case UData8, SData8:
		return fixed(data, at, order, 8)
	}
	return 0, -1
}

// fixed reads an unsigned number of 2, 4 or 8 bytes.
func fixed(data []byte, at int, order binary.ByteOrder, size int) (v uint64, end int) {
	if at < 0 || at > len(data) || len(data)-at < size {
		return 0, -1
	}
	switch b := data[at:]; size {
	case 2:
		v = uint64(order.Uint16(b))
	case 4:
		v = uint64(order.Uint32(b))
	default:
		v = order.Uint64(b)
	}
	return v, at + size
}
