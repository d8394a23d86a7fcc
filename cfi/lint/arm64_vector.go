package lint

import "github.com/callreel/callreel/isa/arm64"

// vector covers SIMD and floating point without memory: the lower halves of v8 to v15 are followed where they are copied.
func (e onARM64) vector() {
	in := e.in
	d, n := in.Rd(), in.Rn()
	if w := in.GPRWritten(); w != 0 {
		v := value{}
		if in.Word&0xFFFFFC00 == 0x9E660000 { // fmov of a double to a general register
			var ok bool
			if v, ok = e.vectorReg(n); !ok {
				v = value{may: mayStack}
			}
		}
		e.write(d, v)
		return
	}
	if in.FlagsChanged() {
		return // a comparison
	}
	if read := in.GPRRead(); read != 0 {
		_, followed := e.vectorReg(d)
		if in.Word&0xFFFFFC00 == 0x9E670000 && followed { // fmov of a general register to a double
			e.writeVector(d, e.reg(n))
			return
		}
		if copiesGeneral(in.Word) {
			e.escapeRead(read)
		}
		e.writeVector(d, value{may: mayStack})
		return
	}
	if in.Word&0xFFFFFC00 == 0x1E604000 || in.Word&0xFFE0FC00 == 0x0EA01C00|in.Word&(1<<30) && n == in.Rm() { // fmov, mov
		if v, ok := e.vectorReg(n); ok {
			if _, followed := e.vectorReg(d); !followed && v.kind == entry {
				e.escape(v)
			}
			e.writeVector(d, v)
			return
		}
	}
	var from may
	for _, r := range [...]arm64.Reg{n, in.Rm(), in.Rt2()} {
		if v, ok := e.vectorReg(r); ok {
			from |= v.maybe()
		}
	}
	if v, ok := e.vectorReg(d); ok && keepsSome(in.Word) {
		from |= v.maybe()
	}
	e.writeVector(d, value{may: from})
}

// copiesGeneral says whether a vector instruction copies a general register of 64 bits as it is.
func copiesGeneral(word uint32) bool {
	switch {
	case word&0xFFFFFC00 == 0x9E670000, word&0xFFFFFC00 == 0x9EAF0000: // fmov
		return true
	case word&0xFFEFFC00 == 0x4E081C00, word&0xFFFFFC00 == 0x4E080C00: // ins, dup
		return true
	}
	return false
}

// keepsSome says whether a vector instruction may leave its destination as it was, in part or whole: selection by bits, insertion of
// elements, and logic with an immediate.
func keepsSome(word uint32) bool {
	switch {
	case word&0xBF20FC00 == 0x2E201C00: // bsl, bit, bif
		return true
	case word&0xFFE08400 == 0x6E000400, word&0xFFE0FC00 == 0x4E001C00: // ins
		return true
	case word&0x9FF80C00 == 0x0F000400 && word>>12&1 != 0: // orr, bic
		return true
	case word>>24&31 == 0b01110: // narrowing to the upper half, and what else there is of two registers
		return word>>30&1 != 0 && word>>10&3 == 2
	}
	return false
}

// scalable covers SVE and SME, of which the decoder tells nothing apart. Of the stack pointer it is certain: only addvl and addpl, and
// what is like them for streaming mode, write it.
func (e onARM64) scalable() {
	in := e.in
	const addvl = 0x04205000 // addvl, addpl, addsvl, addspl; bits 11 and 22 tell them apart
	if in.Word&^(1<<22|1<<11|31<<16|63<<5|31) == addvl {
		if v := e.s.regs[in.Rn()]; v.framed() {
			e.anchor(int(in.Rd()))
		} else {
			e.set(int(in.Rd()), value{may: v.maybe()})
		}
		return
	}
	const scalableStores = 0b1110010
	if v := e.s.regs[in.Rn()]; in.Class == arm64.SME || in.Word>>25 == scalableStores && v.maybe()&mayOwn != 0 {
		e.touchedAll = true
		for k := range e.s.slots {
			e.s.slots[k].val = value{may: e.s.slots[k].val.maybe() | mayAll}
		}
	}
	v, ok := e.vectorReg(in.Rd())
	if ok {
		e.writeVector(in.Rd(), value{may: v.maybe() | mayEntry | mayStack})
	}
	const address = 1 << arm64.SP
	e.byMasks(in.GPRRead()&^address, in.GPRWritten()&^address)
}
