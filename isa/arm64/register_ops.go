package arm64

// register is data processing with registers (Arm ARM C4.1.95 and below).
func (i *Inst) register() bool {
	d, n, m, wide := i.Rd(), i.Rn(), i.Rm(), i.bit(31)
	if !i.bit(28) {
		i.reads(m)
		switch {
		case !i.bit(24): // and, bic, orr, orn, eor, eon, ands, bics
			i.reads(n)
			i.writes(d)
			i.writesFlags = i.field(29, 2) == 0b11
			return wide || !i.bit(15)
		case !i.bit(21): // add, adds, sub, subs, shifted
			i.reads(n)
			i.writes(d)
			i.writesFlags = i.bit(29)
			return i.field(22, 2) != 0b11 && (wide || !i.bit(15))
		}
		i.readsSP(n) // the same, extended
		i.flagsOrSP(d)
		return i.field(22, 2) == 0 && i.field(10, 3) <= 4
	}
	if i.bit(24) {
		return i.multiply()
	}
	switch i.field(21, 4) {
	case 0b0000:
		return i.carry()
	case 0b0010: // ccmn, ccmp
		i.reads(n)
		if !i.bit(11) {
			i.reads(m)
		}
		i.readsFlags, i.writesFlags = true, true
		return i.bit(29) && !i.bit(10) && !i.bit(4)
	case 0b0100: // csel, csinc, csinv, csneg
		i.reads(n)
		i.reads(m)
		i.writes(d)
		i.readsFlags = true
		return !i.bit(29) && !i.bit(11)
	case 0b0110:
		if i.bit(30) {
			return i.oneSource()
		}
		return i.twoSources()
	}
	return false
}

// carry is adc and sbc, checked pointers (CPA), and what sets flags alone (rmif, setf8, setf16).
func (i *Inst) carry() bool {
	d, n, m := i.Rd(), i.Rn(), i.Rm()
	switch {
	case i.field(10, 6) == 0:
		i.reads(n)
		i.reads(m)
		i.writes(d)
		i.readsFlags, i.writesFlags = true, i.bit(29)
		return true
	case i.field(13, 3) == 0b001: // addpt, subpt
		i.readsSP(n)
		i.reads(m)
		i.writesSP(d)
		return i.bit(31) && !i.bit(29)
	}
	i.reads(n)
	i.readsFlags = true // what the mask leaves out is kept
	i.writesFlags = true
	if i.field(10, 5) == 0b00001 { // rmif
		return i.field(29, 3) == 0b101 && !i.bit(4)
	}
	return i.field(29, 3) == 0b001 && i.field(15, 6) == 0 && i.field(10, 4) == 0b0010 && i.field(0, 5) == 0b01101
}

// multiply is madd and its siblings, of three sources.
func (i *Inst) multiply() bool {
	i.reads(i.Rn())
	i.reads(i.Rm())
	i.reads(i.Rt2())
	i.writes(i.Rd())
	if i.field(29, 2) != 0 {
		return false
	}
	switch i.field(21, 3) {
	case 0b000:
		return true
	case 0b001, 0b101, 0b011: // smaddl, umaddl, maddpt
		return i.bit(31)
	case 0b010, 0b110: // smulh, umulh
		i.read = 0 // the place for Ra is not used
		i.reads(i.Rn())
		i.reads(i.Rm())
		return i.bit(31) && !i.bit(15)
	}
	return false
}

// twoSources is division, shifts, checksums, minima and maxima, tags, and pacga.
func (i *Inst) twoSources() bool {
	d, n, m, wide, op := i.Rd(), i.Rn(), i.Rm(), i.bit(31), i.field(10, 6)
	i.writes(d)
	if i.bit(29) { // subps
		i.readsSP(n)
		i.readsSP(m)
		i.writesFlags = true
		return wide && op == 0
	}
	i.reads(n)
	i.reads(m)
	switch op {
	case 0b000000: // subp
		i.readsSP(n)
		i.readsSP(m)
		return wide
	case 0b000100: // irg
		i.readsSP(n)
		i.writesSP(d)
		return wide
	case 0b000101: // gmi
		i.readsSP(n)
		return wide
	case 0b001100: // pacga
		i.readsSP(m)
		return wide
	case 0b000010, 0b000011, 0b001000, 0b001001, 0b001010, 0b001011, 0b011000, 0b011001, 0b011010, 0b011011:
		return true
	case 0b010000, 0b010001, 0b010010, 0b010100, 0b010101, 0b010110: // crc32
		return !wide
	case 0b010011, 0b010111:
		return wide
	}
	return false
}

// oneSource is what turns or counts bits, and signs and authenticates addresses.
func (i *Inst) oneSource() bool {
	d, n, wide, op := i.Rd(), i.Rn(), i.bit(31), i.field(10, 6)
	i.writes(d)
	if i.bit(29) {
		return false
	}
	switch i.Rm() {
	case 0:
		i.reads(n)
		return op <= 8 && (wide || op != 3)
	case 1:
		i.reads(d)
		i.readsSP(n)
		switch {
		case !wide:
			return false
		case op < 8: // pacia … autdb
			i.signs(op >= 4)
			return true
		case op < 16: // paciza … autdzb
			i.signs(op >= 12)
			i.read &^= n.Mask()
			i.reads(d)
			return n == 31
		case op < 18: // xpaci, xpacd
			i.Class = Strip
			i.read &^= n.Mask()
			i.reads(d)
			return n == 31
		}
		return i.signsByPC(op)
	}
	return false
}

// signsByPC is FEAT_PAuth_LR, whose signatures are about the signing instruction's address.
func (i *Inst) signsByPC(op uint32) bool {
	i.Class = SignPC
	i.readsSP(SP)
	switch op {
	case 0b100000, 0b100001, 0b101000, 0b101001: // pacnbiasppc, paciasppc
		return i.Rn() == 31 && i.Rd() == LR
	case 0b100100, 0b100101: // autiasppcr
		return i.Rd() == LR
	case 0b100010, 0b100011, 0b101110, 0b101111: // pacia171615, autia171615
		i.read |= 1<<15 | 1<<16 | 1<<17
		i.writes(X17)
		return i.Rn() == 31 && i.Rd() == LR
	}
	return false
}
