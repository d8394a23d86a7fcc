package arm64

import "math/bits"

// immediate is data processing with an immediate (Arm ARM C4.1.86 and below).
func (i *Inst) immediate() bool {
	d, n, wide := i.Rd(), i.Rn(), i.bit(31)
	switch i.field(23, 3) {
	case 0b000, 0b001: // adr, adrp
		i.Class = Address
		i.writes(d)
		distance := i.signed(5, 19)<<2 | int64(i.field(29, 2))
		if wide {
			distance <<= 12
		}
		return i.relative(distance)
	case 0b010: // add, adds, sub, subs
		i.Class = AddSubImm
		i.readsSP(n)
		i.flagsOrSP(d)
		return true
	case 0b011:
		return i.tagsOrLimits()
	case 0b100: // and, orr, eor, ands
		i.reads(n)
		if i.field(29, 2) == 0b11 {
			i.writes(d)
			i.writesFlags = true
		} else {
			i.writesSP(d)
		}
		return i.bitmask()
	case 0b101: // movn, movz, movk
		op := i.field(29, 2)
		i.writes(d)
		if op == 0b11 {
			i.reads(d)
		}
		return op != 0b01 && (wide || !i.bit(22))
	case 0b110: // sbfm, bfm, ubfm
		op := i.field(29, 2)
		i.reads(n)
		i.writes(d)
		if op == 0b01 {
			i.reads(d)
		}
		return op != 0b11 && wide == i.bit(22) && (wide || !i.bit(21) && !i.bit(15))
	}
	if i.field(29, 2) == 0b11 { // autiasppc, autibsppc: they name the instruction that has signed
		i.Class = SignPC
		i.reads(LR)
		i.readsSP(SP)
		i.writes(LR)
		i.relative(-4 * int64(i.field(5, 16)))
		return wide && i.field(22, 1) == 0 && d == 31
	}
	i.reads(n) // extr
	i.reads(i.Rm())
	i.writes(d)
	return i.field(29, 2) == 0 && !i.bit(21) && wide == i.bit(22) && (wide || !i.bit(15))
}

// flagsOrSP takes note of the result of an addition or subtraction: with flags (bit 29), 31 is the zero register.
func (i *Inst) flagsOrSP(d Reg) {
	if i.bit(29) {
		i.writes(d)
		i.writesFlags = true
	} else {
		i.writesSP(d)
	}
}

// tagsOrLimits is addg and subg (MTE), and minima and maxima (CSSC).
func (i *Inst) tagsOrLimits() bool {
	if i.bit(22) {
		i.reads(i.Rn())
		i.writes(i.Rd())
		return i.field(29, 2) == 0 && i.field(18, 4) < 4
	}
	i.readsSP(i.Rn())
	i.writesSP(i.Rd())
	return i.bit(31) && !i.bit(29)
}

// bitmask reports whether N, immr and imms are a bitmask immediate (Arm ARM, DecodeBitMasks): a run of ones in an
// element of 2 to 64 bits that is not all ones.
func (i *Inst) bitmask() bool {
	wide, n, imms := i.bit(31), i.field(22, 1), i.field(10, 6)
	if n == 1 && !wide {
		return false
	}
	size := bits.Len32(n<<6|^imms&0x3F) - 1
	if size < 1 {
		return false
	}
	ones := uint32(1)<<size - 1
	return imms&ones != ones
}
