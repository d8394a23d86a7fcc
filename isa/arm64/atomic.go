package arm64

// atomic is what reads, changes and writes memory at once (LSE), and 64-byte accesses (LS64).
func (i *Inst) atomic() bool {
	i.Class = Atomic
	i.addressed(0)
	size, op, s, t := i.field(30, 2), i.field(12, 3), i.Rm(), i.Rd()
	i.Size = 1 << size
	if i.bit(26) {
		return false
	}
	i.reads(s)
	i.writes(t)
	if !i.bit(15) || op == 0 { // ldadd … ldumin, swp
		return true
	}
	single := i.field(22, 2) == 0 // neither acquire nor release
	switch op {
	case 0b001: // st64b; rcwclr
		if size == 3 {
			return single && s == 31 && i.eight(false)
		}
		return i.checkedSwap()
	case 0b010, 0b011: // st64bv0, st64bv; rcwswp, rcwset
		if size == 3 {
			i.read &^= s.Mask() // it is the status
			i.written = 0
			i.addressed(0)
			i.writes(s)
			return single && i.eight(false)
		}
		return i.checkedSwap()
	case 0b100: // ldapr
		i.Class = Ordered
		return i.field(22, 2) == 0b10 && s == 31
	case 0b101: // ld64b
		return size == 3 && single && s == 31 && i.eight(true)
	}
	return false
}

// checkedSwap is FEAT_THE's: the result is in flags, too.
func (i *Inst) checkedSwap() bool {
	i.Size = 8
	i.writesFlags = true
	return i.field(30, 2) < 2
}

// eight takes note of the eight registers of a 64-byte access, from an even one on.
func (i *Inst) eight(load bool) bool {
	t := i.Rd()
	if t&1 != 0 || t > 22 {
		return false
	}
	i.Size = 64
	for k := range Reg(8) {
		if load {
			i.writes(t + k)
		} else {
			i.reads(t + k)
		}
	}
	if !load && i.Rm() == 31 { // st64b has no status
		i.written = 0
	}
	i.Class = Store
	if load {
		i.Class = Load
	}
	return true
}

// copies is cpyp, setp and their siblings (MOPS): the addresses and the count are read and written.
func (i *Inst) copies() bool {
	i.Class = MemoryCopy
	d, n, s := i.Rd(), i.Rn(), i.Rm()
	i.reads(d)
	i.reads(n)
	i.reads(s)
	i.writes(d)
	i.writes(n)
	i.readsFlags, i.writesFlags = true, true // the first sets what the others go by
	if d == 31 || d == n || d == s || n == s {
		return false
	}
	if i.field(22, 2) == 0b11 { // setp …: Rs is the value
		return i.field(14, 2) != 0b11
	}
	i.writes(s)
	return s != 31
}

// vectorUnscaledOrdered is ldapur and stlur of a vector register (LRCPC3).
func (i *Inst) vectorUnscaledOrdered() bool {
	if i.bit(21) || i.field(10, 2) != 0b10 {
		return false
	}
	i.addressed(i.signed(12, 9))
	ok := i.transfer(false)
	i.Class = Ordered
	return ok
}

// newer is what came with later extensions into one corner: ordered accesses with a displacement (RCPC2, LRCPC3), tags
// (MTE), 128-bit atomics (LSE128, THE), and guarded control stacks (GCS).
func (i *Inst) newer() bool {
	size, low := i.field(30, 2), i.field(10, 2)
	i.addressed(i.signed(12, 9))
	if !i.bit(21) {
		switch low {
		case 0b00: // ldapur, stlur
			ok := i.transfer(false)
			i.Class = Ordered
			return ok
		case 0b10:
			return size >= 2 && i.orderedPair()
		case 0b11:
			return i.Word&^0x13FF == 0xD91F0C00 && i.shadowStore()
		}
		return false
	}
	if size == 0b11 {
		return i.tag()
	}
	return size < 2 && i.wideAtomic()
}

// shadowStore is gcsstr and gcssttr.
func (i *Inst) shadowStore() bool {
	i.Class, i.Size, i.Disp = Store, 8, 0
	i.reads(i.Rd())
	return true
}

// orderedPair is stilp and ldiapp, and ldapr and stlr that change the base (LRCPC3).
func (i *Inst) orderedPair() bool {
	i.Class, i.Size, i.Disp = Ordered, 4<<i.field(30, 1), 0
	load := i.bit(22)
	i.loadsOrStores(load)
	size := int32(i.Size)
	if i.bit(23) {
		if i.field(12, 9) != 0 {
			return false
		}
	} else {
		if load {
			i.writes(i.Rm())
		} else {
			i.reads(i.Rm())
		}
		size *= 2
		if i.field(12, 4) == 1 { // as it is
			return true
		}
		if i.field(12, 4) != 0 {
			return false
		}
	}
	i.writesBack(load)
	i.Disp = size
	if !load {
		i.Disp = -size
	}
	return true
}

// tag is stg, ldg and their siblings (MTE).
func (i *Inst) tag() bool {
	op, mode, t := i.field(22, 2), i.field(10, 2), i.Rd()
	i.Class = Tag
	i.Disp *= 16
	if mode == 0b00 {
		switch op {
		case 0b01: // ldg: the rest of Rt is kept
			i.reads(t)
			i.writes(t)
			return true
		case 0b11: // ldgm
			i.writes(t)
		default: // stzgm, stgm
			i.reads(t)
		}
		return i.field(12, 9) == 0
	}
	i.readsSP(t)
	if mode != 0b10 {
		i.writesBack(mode == 0b01)
	}
	return true
}

// wideAtomic is 128-bit atomics and compare and swap that checks (LSE128, THE).
func (i *Inst) wideAtomic() bool {
	i.Class, i.Size, i.Disp = Atomic, 8, 0
	s, t, op := i.Rm(), i.Rd(), i.field(10, 6)
	i.reads(t)
	i.reads(s)
	size := i.field(30, 2)
	switch op {
	case 0b000010: // rcwcas
		i.writes(s)
		i.writesFlags = true
		return true
	case 0b000011: // rcwcasp
		i.reads(t + 1)
		i.reads(s + 1)
		i.writes(s)
		i.writes(s + 1)
		i.writesFlags = true
		return t&1 == 0 && s&1 == 0
	}
	i.writes(t)
	i.writes(s)
	switch op {
	case 0b000100, 0b001100, 0b100000: // ldclrp, ldsetp, swpp
		return size == 0 && t != 31 && s != 31
	case 0b100100, 0b101000, 0b101100: // rcwclrp, rcwswpp, rcwsetp
		i.writesFlags = true
		return t != 31 && s != 31
	}
	return false
}
