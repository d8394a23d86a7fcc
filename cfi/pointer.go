package cfi

// Pointer encodings (LSB Core 5.0 §10.5.1): the low four bits are the format, the
// next three what the value is relative to, the highest says that the pointer is
// the address of the value.
const (
	encAbsPtr  = 0x00
	encULEB    = 0x01
	encUData2  = 0x02
	encUData4  = 0x03
	encUData8  = 0x04
	encSigned  = 0x08 // signed, of the size of an address
	encSLEB    = 0x09
	encSData2  = 0x0a
	encSData4  = 0x0b
	encSData8  = 0x0c
	formatMask = 0x0f

	encPCRel    = 0x10
	encTextRel  = 0x20
	encDataRel  = 0x30
	encFuncRel  = 0x40
	encAligned  = 0x50
	relMask     = 0x70
	encIndirect = 0x80

	encOmit = 0xff
)

// bases is what encoded pointers are relative to.
type bases struct {
	section  uint64 // address of the cursor's first byte
	text     uint64
	data     uint64
	function uint64
	size     int // of an address: 4 or 8
}

// pointer reads an encoded pointer. A raw value of 0 means "none" whatever it is
// relative to. The indirect flag is left to the caller.
func (c *cursor) pointer(enc byte, b *bases) (uint64, bool) {
	if enc&relMask == encAligned {
		address := b.section + uint64(c.at)
		pad := -address & uint64(b.size-1)
		if _, ok := c.bytes(pad); !ok {
			return 0, false
		}
		return c.word(b.size)
	}
	place := b.section + uint64(c.at)
	v, ok := c.pointerValue(enc&formatMask, b.size)
	if !ok || v == 0 {
		return 0, ok
	}
	switch enc & relMask {
	case 0:
	case encPCRel:
		v += place
	case encTextRel:
		v += b.text
	case encDataRel:
		v += b.data
	case encFuncRel:
		v += b.function
	default:
		return 0, false
	}
	return truncate(v, b.size), true
}

// pointerValue reads a value of the given format, sign-extended to 64 bits.
func (c *cursor) pointerValue(format byte, size int) (uint64, bool) {
	switch format {
	case encAbsPtr:
		return c.word(size)
	case encSigned:
		v, ok := c.word(size)
		if size == 4 {
			v = uint64(int32(v))
		}
		return v, ok
	case encULEB:
		return c.uleb()
	case encSLEB:
		v, ok := c.sleb()
		return uint64(v), ok
	case encUData2:
		v, ok := c.u16()
		return uint64(v), ok
	case encSData2:
		v, ok := c.u16()
		return uint64(int16(v)), ok
	case encUData4:
		v, ok := c.u32()
		return uint64(v), ok
	case encSData4:
		v, ok := c.u32()
		return uint64(int32(v)), ok
	case encUData8, encSData8:
		return c.u64()
	}
	return 0, false
}

// truncate wraps an address to its size.
func truncate(v uint64, size int) uint64 {
	if size == 4 {
		return uint64(uint32(v))
	}
	return v
}
