package arm64

// memory is loads, stores and their relatives (Arm ARM C4.1.88 and below).
func (i *Inst) memory() bool {
	switch i.field(24, 6) {
	case 0b001000:
		return i.exclusive()
	case 0b001100:
		return i.structures()
	case 0b001101:
		return i.structure()
	case 0b011000, 0b011100:
		return i.literal()
	case 0b011001, 0b011101:
		if i.field(10, 2) == 0b01 && i.field(30, 2) == 0 && !i.bit(21) {
			return i.copies()
		}
		if i.bit(26) {
			return i.vectorUnscaledOrdered()
		}
		return i.newer()
	case 0b101000, 0b101001, 0b101100, 0b101101:
		return i.pair()
	case 0b111000, 0b111100:
		return i.oneRegister()
	case 0b111001, 0b111101:
		return i.unsignedOffset()
	}
	return false
}

// addressed takes note of a memory operand's base, which is never the zero register.
func (i *Inst) addressed(disp int64) {
	i.Base, i.Disp = i.Rn(), int32(disp)
	i.readsSP(i.Base)
}

// writesBack takes note of a base that is written.
func (i *Inst) writesBack(after bool) {
	i.Writeback, i.PostIndex = true, after
	i.writesSP(i.Base)
}

// literal is ldr, ldrsw and prfm relative to PC.
func (i *Inst) literal() bool {
	i.Class = LoadLiteral
	i.relative(i.signed(5, 19) * 4)
	op := i.field(30, 2)
	if i.bit(26) {
		i.Size = 4 << op
		return op != 0b11
	}
	switch op {
	case 0b00, 0b10:
		i.Size = 4
	case 0b01:
		i.Size = 8
	case 0b11:
		return true // prfm
	}
	i.writes(i.Rd())
	return true
}

// exclusive is exclusive and ordered accesses, and compare and swap.
func (i *Inst) exclusive() bool {
	t, s, t2, size := i.Rd(), i.Rm(), i.Rt2(), i.field(30, 2)
	load, ordered, pairOrSwap := i.bit(22), i.bit(23), i.bit(21)
	i.addressed(0)
	i.Size = 1 << size
	switch {
	case !ordered && !pairOrSwap, !ordered && size >= 2: // stxr, ldxr, stxp, ldxp
		i.Class = Exclusive
		if load {
			i.writes(t)
		} else {
			i.reads(t)
			i.writes(s)
		}
		if pairOrSwap && load {
			i.writes(t2)
		} else if pairOrSwap {
			i.reads(t2)
		}
		return true
	case !ordered: // casp, of two registers each
		i.Class = Atomic
		i.Size = 4 << size
		i.reads(s)
		i.reads(s + 1)
		i.writes(s)
		i.writes(s + 1)
		i.reads(t)
		i.reads(t + 1)
		return t2 == 31 && s&1 == 0 && t&1 == 0
	case !pairOrSwap: // stllr, stlr, ldlar, ldar
		i.Class = Ordered
		i.loadsOrStores(load)
		return true
	}
	i.Class = Atomic // cas
	i.reads(s)
	i.writes(s)
	i.reads(t)
	return t2 == 31
}

// loadsOrStores takes note of Rt as what is loaded or stored.
func (i *Inst) loadsOrStores(load bool) {
	if load {
		i.writes(i.Rd())
	} else {
		i.reads(i.Rd())
	}
}

// memoryClass is the class of a load or store.
func (i *Inst) memoryClass(load bool) {
	i.Class = Store
	if load {
		i.Class = Load
	}
}

// structures is ld1 to ld4 and st1 to st4 of whole vectors.
func (i *Inst) structures() bool {
	i.memoryClass(i.bit(22))
	i.addressed(0)
	i.structureBase()
	if i.bit(31) || i.bit(21) || !i.bit(23) && i.Rm() != 0 {
		return false
	}
	switch i.field(12, 4) {
	case 0b0000, 0b0100, 0b1000: // by elements: not of one
		return i.bit(30) || i.field(10, 2) != 0b11
	case 0b0010, 0b0110, 0b0111, 0b1010:
		return true
	}
	return false
}

// structureBase reads how the base changes: not at all, by Rm, or, where that is 31, by the size.
func (i *Inst) structureBase() {
	if !i.bit(23) {
		return
	}
	if m := i.Rm(); m != 31 {
		i.reads(m)
	}
	i.writesBack(true)
}

// structure is the same of one element of each vector.
func (i *Inst) structure() bool {
	i.memoryClass(i.bit(22))
	i.addressed(0)
	if i.bit(31) {
		return false
	}
	op, size := i.field(13, 3), i.field(10, 2)
	if !i.bit(23) && i.field(16, 5) != 0 { // ldap1, stl1
		i.Class = Ordered
		return i.field(16, 6) == 1 && op == 0b100 && !i.bit(12) && size == 1
	}
	i.structureBase()
	switch op >> 1 {
	case 0:
		return true
	case 1:
		return size&1 == 0
	case 2:
		return size == 0 || size == 1 && !i.bit(12)
	}
	return i.bit(22) && !i.bit(12) // repeated in all
}

// pair is two registers at once.
func (i *Inst) pair() bool {
	op, mode, load, t, t2 := i.field(30, 2), i.field(23, 2), i.bit(22), i.Rd(), i.Rt2()
	i.Class = StorePair
	if load {
		i.Class = LoadPair
	}
	i.Size = 4
	scale := int64(4)
	switch {
	case i.bit(26):
		i.Size = 4 << op
		scale <<= op
	case op == 0b10:
		i.Size, scale = 8, 8
	case op == 0b01 && !load: // stgp: in steps of what one tag is for
		i.Size, scale = 8, 16
	}
	i.addressed(i.signed(15, 7) * scale)
	if mode&1 != 0 {
		i.writesBack(mode == 0b01)
	}
	if i.bit(26) {
		return op != 0b11
	}
	if load {
		i.writes(t)
		i.writes(t2)
	} else {
		i.reads(t)
		i.reads(t2)
	}
	return op != 0b11 && (op != 0b01 || mode != 0)
}

// oneRegister is loads and stores of one register, but for the unsigned offset; and atomics.
func (i *Inst) oneRegister() bool {
	mode := i.field(10, 2)
	if i.bit(21) {
		switch mode {
		case 0b00:
			return i.atomic()
		case 0b10:
			return i.registerOffset()
		}
		return i.authenticatedLoad()
	}
	disp := i.signed(12, 9)
	i.addressed(disp)
	switch mode {
	case 0b01, 0b11:
		i.writesBack(mode == 0b01)
	case 0b10: // unprivileged
		if i.bit(26) {
			return false
		}
	}
	return i.transfer(mode == 0b00)
}

// transfer reads size, V and opc of a load or store of one register; hint says whether there is a prefetch among them.
func (i *Inst) transfer(hint bool) bool {
	size, op := i.field(30, 2), i.field(22, 2)
	i.Size = 1 << size
	if i.bit(26) {
		i.memoryClass(op&1 != 0)
		if op >= 2 {
			i.Size = 16
			return size == 0
		}
		return true
	}
	i.memoryClass(op != 0)
	switch {
	case op == 0:
		i.reads(i.Rd())
		return true
	case size == 3 && op == 2:
		i.Class, i.Size = Prefetch, 0
		return hint
	}
	i.writes(i.Rd())
	return size < 2 || op == 1 || op == 2
}

// registerOffset is a base and an extended, shifted register.
func (i *Inst) registerOffset() bool {
	i.addressed(0)
	i.reads(i.Rm())
	i.Index = true
	return i.bit(14) && i.transfer(true)
}

func (i *Inst) unsignedOffset() bool {
	if !i.transfer(true) {
		return false
	}
	scale := i.field(30, 2)
	if i.Size == 16 {
		scale = 4
	}
	i.addressed(int64(i.field(10, 12)) << scale)
	return true
}

// authenticatedLoad is ldraa and ldrab.
func (i *Inst) authenticatedLoad() bool {
	i.Class, i.Size = Load, 8
	i.addressed(int64(int32(i.field(22, 1)<<31)>>22|int32(i.field(12, 9))) * 8)
	if i.bit(11) {
		i.writesBack(false)
	}
	i.writes(i.Rd())
	return i.field(30, 2) == 0b11 && !i.bit(26)
}
