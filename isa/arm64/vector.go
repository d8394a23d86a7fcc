package arm64

// vector is SIMD and floating point without memory (Arm ARM C4.1.96 and below).
func (i *Inst) vector() bool {
	i.Class = Vector
	if !i.vectorKnown() {
		return false
	}
	d, n := i.Rd(), i.Rn()
	switch {
	case i.field(24, 5) == 0b11110 && !i.bit(30):
		return i.scalarFloat()
	case i.Word&0xBFE08400 == 0x0E000400: // dup, ins, smov, umov between a vector's elements and a general register
		i.copiesElement(d, n)
	}
	return true
}

// vectorKnown looks the word up among those that are allocated.
func (i *Inst) vectorKnown() bool {
	top, rm, op := uint8(i.field(28, 4)<<4|i.field(21, 4)), uint32(1)<<i.field(16, 5), uint64(1)<<i.field(10, 6)
	for at := vectorFirst(top); at < len(vectorAllocated) && vectorAllocated[at].top == top; at++ {
		if row := &vectorAllocated[at]; row.rm&rm != 0 {
			return row.opcodes&op != 0
		}
	}
	return false
}

// vectorFirst returns the first row of the table for top, or where it would be.
func vectorFirst(top uint8) int {
	at, end := 0, len(vectorAllocated)
	for at < end {
		if middle := int(uint(at+end) >> 1); vectorAllocated[middle].top < top {
			at = middle + 1
		} else {
			end = middle
		}
	}
	return at
}

// copiesElement is "Advanced SIMD copy".
func (i *Inst) copiesElement(d, n Reg) {
	switch i.field(11, 4) {
	case 0b0001, 0b0011: // dup, ins from a general register
		i.reads(n)
	case 0b0101, 0b0111: // smov, umov
		i.writes(d)
	}
}

// scalarFloat is scalar floating point: conversions move between general and vector registers, comparisons set flags.
func (i *Inst) scalarFloat() bool {
	switch {
	case !i.bit(21): // fixed point
		i.converts(i.field(16, 3))
		return true
	case i.field(10, 6) == 0: // integers
		i.converts(i.field(16, 3))
		if i.Word&0xFFFFFC00 == 0x1E7E0000 { // fjcvtzs
			i.written, i.read, i.writesFlags = 0, 0, true
			i.writes(i.Rd())
		}
		return true
	case i.field(10, 4) == 0b1000: // fcmp
		i.writesFlags = true
		return i.field(0, 3) == 0
	case i.field(10, 3) == 0b100: // fmov of a constant
		return i.Rn() == 0
	case i.field(10, 2) == 0b01: // fccmp
		i.readsFlags, i.writesFlags = true, true
	case i.field(10, 2) == 0b11: // fcsel
		i.readsFlags = true
	}
	return true
}

// converts is a conversion or move between a general and a vector register, by its opcode.
func (i *Inst) converts(op uint32) {
	switch op {
	case 0b010, 0b011, 0b111: // scvtf, ucvtf, fmov to a vector register
		i.reads(i.Rn())
	default:
		i.writes(i.Rd())
	}
}
