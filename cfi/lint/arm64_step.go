package lint

import "github.com/callreel/callreel/isa/arm64"

// onARM64 is effects with the instruction at hand.
type onARM64 struct {
	*effects
	in *arm64.Inst
}

// Linux's number of clone on AArch64; clone3 has the same everywhere.
const sysCloneARM64 = 220

func (e onARM64) step() {
	switch e.in.Kind {
	case arm64.Call, arm64.IndirectCall:
		e.call()
		return
	case arm64.Syscall:
		if nr := e.s.regs[arm64.X8]; nr.kind == constant && (nr.off == sysCloneARM64 || nr.off == sysClone3) {
			e.switches, e.s.regs[arm64.SP] = true, top // the child goes on with a stack of its own
		}
		e.generic()
		return
	case arm64.Other:
	default:
		return // branches change nothing that is followed
	}
	switch e.in.Class {
	case arm64.AddSubImm:
		e.addImmediate()
	case arm64.Plain:
		if !e.plain() {
			e.generic()
		}
	case arm64.Load, arm64.LoadPair:
		e.load()
	case arm64.Store, arm64.StorePair:
		e.save()
	case arm64.LoadLiteral:
		e.literal()
	case arm64.Sign, arm64.Authenticate, arm64.Strip:
		e.sign()
	case arm64.Vector:
		e.vector()
	case arm64.SVE, arm64.SME:
		e.scalable()
	default:
		e.generic()
	}
}

// call is what a function does that keeps to the ABI. Behind it the link register has the address of what follows.
func (e onARM64) call() {
	behind := value{kind: constant, off: int64(e.addr + arm64.Len)}
	if to, ok := e.in.Target(e.addr); !ok || to != e.addr+arm64.Len {
		e.called()
	}
	e.s.regs[arm64.LR] = behind
}

// reg is what a register holds where 31 is zero.
func (e onARM64) reg(r arm64.Reg) value {
	if r == 31 {
		return value{kind: constant}
	}
	return e.s.regs[r]
}

// write gives a register a value where 31 is none.
func (e onARM64) write(r arm64.Reg, v value) {
	if r != 31 {
		e.s.regs[r] = v
	}
}

// addImmediate covers add and sub with an immediate, of which moves to and from the stack pointer are.
func (e onARM64) addImmediate() {
	in := e.in
	d, n, flags := in.Rd(), in.Rn(), in.Word>>29&1 != 0
	v := value{}
	if in.Word>>31 != 0 {
		by := in.Immediate()
		if in.Word>>30&1 != 0 {
			by = -by
		}
		v = e.s.regs[n].add(by)
	}
	switch {
	case flags:
		e.write(d, v)
	case d == arm64.SP && n == arm64.SP:
		e.sum(arm64.SP, v, value{})
	default:
		e.set(int(d), v)
	}
}

// isAddShifted says whether a word adds or subtracts a shifted register, isAddExtended whether it does an extended one.
func isAddShifted(word uint32) bool  { return word&0x1F200000 == 0x0B000000 }
func isAddExtended(word uint32) bool { return word&0x1FE00000 == 0x0B200000 }

// plain covers what computes addresses and constants in registers; false for all else.
func (e onARM64) plain() bool {
	in := e.in
	d, wide := in.Rd(), in.Word>>31 != 0
	switch w := in.Word; {
	case w&0x7FE0FFE0 == 0x2A0003E0: // mov
		v := e.reg(in.Rm())
		if !wide {
			v = narrow(v)
		}
		e.write(d, v)
	case w&0x1F800000 == 0x12800000 && w>>29&3 != 1: // movn, movz, movk
		e.moveWide()
	case w&0xFF8003E0 == 0xB20003E0: // mov of a bitmask
		mask, ok := bitmask(w)
		if !ok || d == arm64.SP {
			return false
		}
		e.write(d, value{kind: constant, off: int64(mask)})
	case w&0xFF800000 == 0x92000000: // and
		return e.align()
	case isAddShifted(w) && wide:
		e.addRegister(e.reg(in.Rn()), e.shifted())
	case isAddExtended(w) && wide:
		e.addRegister(e.s.regs[in.Rn()], e.extended())
	default:
		return false
	}
	return true
}

// narrow is a value of which the lower half is taken, zero-extended.
func narrow(v value) value {
	if v.kind == constant {
		return value{kind: constant, off: int64(uint32(v.off))}
	}
	return value{}
}

// moveWide covers movn, movz and movk.
func (e onARM64) moveWide() {
	in := e.in
	d, shift := in.Rd(), 16*(in.Word>>21&3)
	imm := uint64(in.Word>>5&0xFFFF) << shift
	v := value{kind: constant, off: int64(imm)}
	switch old := e.reg(d); {
	case in.Word>>29&3 == 0:
		v.off = int64(^imm)
	case in.Word>>29&3 == 2:
	case old.kind == constant:
		v.off = int64(uint64(old.off)&^(0xFFFF<<shift) | imm)
	default:
		v = value{}
	}
	if in.Word>>31 == 0 {
		v = narrow(v)
	}
	e.write(d, v)
}

// align covers and with a mask: an address in the frame is rounded down.
func (e onARM64) align() bool {
	d := e.in.Rd()
	mask, ok := maskOf(e.in)
	if !ok || mask>>63 == 0 || !e.reg(e.in.Rn()).framed() {
		return false
	}
	e.anchor(int(d))
	return true
}

// shifted is the second operand of an addition.
func (e onARM64) shifted() value {
	v := e.reg(e.in.Rm())
	switch amount := e.in.Word >> 10 & 63; {
	case amount == 0:
		return v
	case v.kind == constant && e.in.Word>>22&3 == 0: // lsl
		v.off <<= amount
		return v
	}
	return value{}
}

// extended is that of one with an extended register.
func (e onARM64) extended() value {
	const uxtw, uxtx, sxtw, sxtx = 2, 3, 6, 7
	v := e.reg(e.in.Rm())
	option, amount := e.in.Word>>13&7, e.in.Word>>10&7
	if amount == 0 && (option == uxtx || option == sxtx) {
		return v
	}
	if v.kind != constant {
		return value{}
	}
	switch option {
	case uxtw:
		v.off = int64(uint32(v.off))
	case sxtw:
		v.off = int64(int32(v.off))
	case uxtx, sxtx:
	default:
		return value{}
	}
	v.off <<= amount
	return v
}

// addRegister adds or subtracts.
func (e onARM64) addRegister(n, by value) {
	in := e.in
	sign := int64(1)
	if in.Word>>30&1 != 0 {
		sign = -1
	}
	v, d := plus(n, by, sign), in.Rd()
	switch flags := in.Word>>29&1 != 0; {
	case sign < 0 && n.framed() && !v.framed() && by.maybe()&mayOwn == 0 && d < arm64.SP:
		e.anchor(int(d)) // the stack pointer to be
	case flags || !isAddExtended(in.Word):
		e.write(d, v)
	case d == arm64.SP && in.Rn() == arm64.SP && sign > 0 && !v.framed():
		e.installs, e.switches, e.s.regs[arm64.SP] = true, true, top // __builtin_eh_return
	case d == arm64.SP && in.Rn() == arm64.SP:
		e.sum(arm64.SP, v, by)
	default:
		e.set(int(d), v)
	}
}

// sign covers what signs, authenticates and strips the return address. What is signed with the stack pointer is so as unwinders expect if
// that is the CFA.
func (e onARM64) sign() {
	in := e.in
	lr := &e.s.regs[arm64.LR]
	if in.Class == arm64.Strip && in.WritesReg(arm64.LR) && lr.kind == entry {
		lr.signed = unsigned
		return
	}
	const hint, paciasp, pacibsp, autiasp, autibsp = 0xD503201F, 25, 27, 29, 31
	n := in.Word >> 5 & 127
	if in.Word&^(127<<5) != hint || n != paciasp && n != pacibsp && n != autiasp && n != autibsp {
		e.generic()
		return
	}
	if lr.kind != entry {
		return // not the return address, or not known
	}
	by := signedOff
	switch sp := e.s.regs[arm64.SP]; {
	case !sp.framed():
		*lr = value{may: lr.maybe()}
		return
	case sp != value{kind: onStack}:
	case n == pacibsp || n == autibsp:
		by = signedB
	default:
		by = signedA
	}
	switch {
	case n == paciasp || n == pacibsp:
		if lr.signed != unsigned {
			*lr = value{may: lr.maybe()}
			return
		}
		lr.signed = by
	case lr.signed == by:
		lr.signed = unsigned
	default: // it traps, or was signed elsewhere
		*lr = value{may: lr.maybe()}
	}
}
