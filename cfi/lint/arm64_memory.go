package lint

import "github.com/callreel/callreel/isa/arm64"

// operand returns the address that is accessed, and what the base holds afterwards.
func (e onARM64) operand() (at, base value) {
	in := e.in
	base = e.s.regs[in.Base]
	switch moved := base.add(int64(in.Disp)); {
	case in.Index:
		return e.indexed(base), base
	case in.Writeback && in.PostIndex && isStructure(in.Word):
		return base, value{may: base.maybe()} // by the size, or a register
	case in.PostIndex:
		return base, moved
	case in.Writeback:
		return moved, moved
	default:
		return moved, base
	}
}

// indexed adds the index, which is extended and shifted.
func (e onARM64) indexed(base value) value {
	const uxtx, sxtx = 3, 7
	in := e.in
	index := e.reg(in.Rm())
	shift := uint(0)
	if in.Word>>12&1 != 0 {
		for n := in.Size; n > 1; n /= 2 {
			shift++
		}
	}
	option := in.Word >> 13 & 7
	switch {
	case option != uxtx && option != sxtx && index.kind == constant:
		return value{may: base.maybe()}
	case index.kind == constant:
		return base.add(index.off << shift)
	case shift == 0 && base.kind == constant && (option == uxtx || option == sxtx):
		return index.add(base.off)
	}
	return value{may: base.maybe() | index.maybe()}
}

// isStructure says whether a word loads or stores structures of vectors.
func isStructure(word uint32) bool { return word>>25&31 == 0b00110 && word>>26&1 != 0 }

// isVector says whether a load or store is of vector registers.
func isVector(word uint32) bool { return word>>26&1 != 0 }

// elsewhere says whether an instruction whose address is only known to lead to the own frame reads something else than where
// registers are saved: what is not known to be a saved register's place and goes to registers that calls do not keep, or is
// an element of an array, is the function's data.
func (e onARM64) elsewhere() bool {
	in := e.in
	if in.Base == arm64.SP || in.Base == arm64.FP || isVector(in.Word) {
		return false
	}
	const kept = 1<<(arm64.SP+1) - 1<<arm64.X19
	return in.Index && in.Word>>12&1 != 0 || in.GPRWritten()&^in.Base.Mask()&kept == 0
}

// loadFrom reads n bytes.
func (e onARM64) loadFrom(at value, n int64) value { return e.effects.loadFrom(at, n, e.elsewhere()) }

// writeBack gives the base what it holds after an access.
func (e onARM64) writeBack(base value) {
	switch in := e.in; {
	case !in.Writeback:
	case in.Base == arm64.SP:
		e.sum(arm64.SP, base, value{})
	default:
		e.s.regs[in.Base] = base
	}
}

// load covers loads of one register or two, general ones or vectors.
func (e onARM64) load() {
	in := e.in
	at, base := e.operand()
	switch {
	case isStructure(in.Word):
		const most = 4
		for k := range arm64.Reg(most) {
			e.writeVector((in.Rd()+k)&31, value{may: mayStack | mayEntry})
		}
	case isVector(in.Word):
		e.loadVector(in.Rd(), at)
		if in.Class == arm64.LoadPair {
			e.loadVector(in.Rt2(), at.add(int64(in.Size)))
		}
	case in.Size > 8: // of eight registers
		e.generic()
		return
	default:
		first, second := e.loaded(at), value{}
		if in.Class == arm64.LoadPair {
			second = e.loaded(at.add(int64(in.Size)))
		}
		e.write(in.Rd(), first)
		if in.Class == arm64.LoadPair {
			e.write(in.Rt2(), second)
		}
	}
	e.writeBack(base)
}

// loaded is what a general register gets from an address.
func (e onARM64) loaded(at value) value {
	if e.in.Size != 8 {
		return value{}
	}
	v := e.loadFrom(at, 8)
	if at.kind == onStack && at.off >= 0 && v.kind == unknown {
		v.may |= mayEntry // a procedure linkage table may have put the return address above the frame
	}
	return v
}

func (e onARM64) loadVector(r arm64.Reg, at value) {
	v := value{}
	if e.in.Size >= 8 {
		v = e.loadFrom(at, 8)
	}
	e.writeVector(r, v)
}

// writeVector gives the lower half of a vector register a value, if that is one that calls keep.
func (e onARM64) writeVector(r arm64.Reg, v value) {
	if r >= firstKept && r < firstKept+keptD {
		e.s.regs[firstD+int(r)-firstKept] = v
	}
}

// vectorReg is the lower half of a vector register; false for one that is not followed.
func (e onARM64) vectorReg(r arm64.Reg) (value, bool) {
	if r < firstKept || r >= firstKept+keptD {
		return value{}, false
	}
	return e.s.regs[firstD+int(r)-firstKept], true
}

// literal covers loads relative to PC, and prefetches.
func (e onARM64) literal() {
	in := e.in
	switch {
	case isVector(in.Word):
		e.writeVector(in.Rd(), value{})
	case in.Size != 0:
		e.write(in.Rd(), value{})
	}
}

// save covers stores of one register or two, general ones or vectors.
func (e onARM64) save() {
	in := e.in
	at, base := e.operand()
	pair := in.Class == arm64.StorePair
	switch {
	case isStructure(in.Word):
		const most = 64
		e.spoil(at, most)
	case isVector(in.Word):
		e.saveVector(in.Rd(), at)
		if pair {
			e.saveVector(in.Rt2(), at.add(int64(in.Size)))
		}
	case in.Size > 8:
		e.generic()
		return
	default:
		e.saveGeneral(in.Rd(), at)
		if pair {
			e.saveGeneral(in.Rt2(), at.add(int64(in.Size)))
		}
	}
	e.writeBack(base)
}

func (e onARM64) saveGeneral(r arm64.Reg, at value) {
	v := e.reg(r)
	if v.kind == unknown && e.saved>>r&1 != 0 && !at.framed() {
		v.may &^= mayEntry
	}
	if e.in.Size != 8 {
		v = value{} // half of an address is none
	}
	e.store(at, v, int64(e.in.Size))
}

// saveVector stores a vector register, whose lower half comes first.
func (e onARM64) saveVector(r arm64.Reg, at value) {
	size := int64(e.in.Size)
	v, followed := e.vectorReg(r)
	if !followed || size < 8 {
		e.spoil(at, size)
		return
	}
	if size > 8 {
		e.spoil(at.add(8), size-8)
	}
	if v.kind == unknown && !at.framed() {
		return // what the function has computed
	}
	e.store(at, v, 8)
}

// spoil writes what is not followed.
func (e onARM64) spoil(at value, n int64) {
	if at.framed() {
		e.touch(placeOf(at), n)
		e.s.spoil(placeOf(at), n, top)
	}
}

// generic covers all instructions by what they read and write.
func (e onARM64) generic() { e.byMasks(e.in.GPRRead(), e.in.GPRWritten()) }

// byMasks covers an instruction that reads and writes these general registers.
func (e onARM64) byMasks(read, written uint32) {
	in := e.in
	var from may
	for r := range firstD {
		if read>>r&1 != 0 {
			from |= e.s.regs[r].maybe()
		}
	}
	if in.Base != arm64.NoReg && in.Class != arm64.Prefetch {
		at, _ := e.operand()
		const most = 64 // sizes err towards more
		e.spoil(at, most)
		e.escapeRead(read &^ in.Base.Mask())
		from |= e.loadFrom(at, 8).maybe() | mayStack
	} else if in.Class == arm64.MemoryCopy {
		e.touchedAll = true
	}
	if written == 0 && !in.FlagsChanged() && in.Kind == arm64.Other {
		e.escapeRead(read)
	}
	delta, known := in.StackDelta()
	for r := range firstD {
		switch {
		case written>>r&1 == 0:
		case r == arm64.SP:
			if e.s.regs[r] = top; known {
				e.s.regs[r] = e.s.regs[r].add(int64(delta))
			}
		case in.Class == arm64.Plain && in.Word>>31 == 0:
			e.s.regs[r] = value{} // half of a register is no address
		default:
			e.s.regs[r] = value{may: from}
		}
	}
}

// escapeRead notes that registers went where they cannot be followed.
func (e onARM64) escapeRead(read uint32) {
	for r := range firstD {
		if read>>r&1 != 0 {
			e.escape(e.s.regs[r])
		}
	}
}
