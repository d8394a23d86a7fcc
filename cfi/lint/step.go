package lint

import "github.com/callreel/callreel/isa/amd64"

// effects carries states over instructions. The fields beside the state are those of the instruction at hand.
type effects struct {
	s    *state
	in   *amd64.Inst
	addr uint64
	id   int32 // of the instruction, for anchors

	// Of the whole function: registers whose value on entry went to where it cannot be followed, and
	// whether the stack pointer was loaded from elsewhere, as what switches stacks does.
	escaped  uint32
	switches bool
	// What was written of the frame, with other things between, and whether there was more.
	touched    []extent
	touchedAll bool
	// fromRows says that states come from rows: what is not known in them then is not what is on its way elsewhere.
	fromRows bool
	// kept tells which registers a call's target certainly keeps beside those that all do.
	kept func(in *amd64.Inst, addr uint64) uint16
}

// extent is n bytes of the own frame.
type extent struct {
	at place
	n  int64
}

// The bits of e.escaped for values of which it is not known whose they are.
const (
	anyEscaped    = 1 << 16 // of a register that calls keep
	anyArgEscaped = 1 << 17 // of another one
)

const rsp = amd64.RSP

// Linux's numbers of the system calls that give a thread another stack.
const (
	sysClone  = 56
	sysClone3 = 435
)

// step changes the state to that behind the instruction. Of a call it is the state after the return.
func (e *effects) step(s *state, in *amd64.Inst, addr uint64, id int32) {
	e.s, e.in, e.addr, e.id = s, in, addr, id
	switch in.Kind {
	case amd64.Call, amd64.IndirectCall:
		e.call()
		return
	case amd64.Syscall:
		if nr := s.regs[amd64.RAX]; nr.kind == constant && (nr.off == sysClone || nr.off == sysClone3) {
			e.switches, s.regs[rsp] = true, top // the child goes on with a stack of its own
		}
		e.generic()
		return
	case amd64.ShortLoop, amd64.XBegin:
		e.generic()
		return
	case amd64.Other:
	default:
		return // branches change nothing that is followed
	}
	if in.Encoding == amd64.Legacy && in.Map == amd64.MapPrimary && in.Prefixes&amd64.Addr67 == 0 && e.primary() {
		return
	}
	e.generic()
}

// call is what a function does that keeps to the ABI.
func (e *effects) call() {
	if to, ok := e.in.Target(e.addr); ok && to == e.addr+uint64(e.in.Len) {
		e.push(value{}, 8) // reads its own address
		return
	}
	kept := uint16(0)
	if e.kept != nil {
		kept = e.kept(e.in, e.addr)
	}
	for r := range e.s.regs {
		switch {
		case callerSaved>>r&1 == 0:
		case kept>>r&1 != 0:
			e.s.regs[r] = value{may: mayStack}
		default:
			e.s.regs[r] = value{may: mayStack | mayCallee}
		}
	}
	// What is below the stack pointer is the callee's.
	if sp := e.s.regs[rsp]; sp.framed() {
		p := placeOf(sp)
		for k := range e.s.slots {
			if at := e.s.slots[k].at; at.anchor == p.anchor && at.off < p.off {
				e.s.slots[k].val = value{may: mayStack | mayCallee}
			}
		}
	}
}

// primary covers the instructions of the one-byte map that move the stack pointer or copy registers; false for others.
func (e *effects) primary() bool {
	in := e.in
	switch op := in.Opcode; {
	case op >= 0x50 && op < 0x58: // push
		e.push(e.s.regs[in.Reg&15], e.pushSize())
	case op >= 0x58 && op < 0x60: // pop
		e.pop(int(in.Reg & 15))
	case op == 0x68 || op == 0x6A:
		e.push(value{kind: constant, off: in.Imm}, e.pushSize())
	case op == 0x9C: // pushf
		e.push(value{}, e.pushSize())
	case op == 0x9D: // popf
		e.moveSP(e.pushSize())
	case op == 0xFF && in.Reg&7 == 6: // push
		if in.Mod == 3 {
			e.push(e.s.regs[in.RM&15], e.pushSize())
		} else {
			e.push(e.load(8), e.pushSize())
		}
	case op == 0x8F: // pop
		e.popTo()
	case op == 0xC9: // leave
		e.leave()
	case op == 0xC8: // enter
		e.enter()
	case op == 0x89, op == 0x8B, op == 0x87, op == 0x8D:
		return e.move(op)
	case op > 0x90 && op < 0x98: // xchg
		return e.exchange(int(amd64.RAX), int(in.Reg&15))
	case op >= 0xB8 && op < 0xC0:
		e.set(int(in.Reg&15), value{kind: constant, off: e.immediate()})
	case op == 0xC7 && in.Reg&7 == 0:
		return e.moveImmediate()
	case op == 0x01, op == 0x03, op == 0x29, op == 0x2B, op == 0x31, op == 0x33, op == 0x81, op == 0x83, op == 0xFF, op == 0x21, op == 0x23:
		return e.arithmetic(op)
	default:
		return false
	}
	return true
}

func (e *effects) wide() bool { return e.in.REX&amd64.RexW != 0 }

func (e *effects) pushSize() int64 {
	if e.in.Prefixes&amd64.Opsize66 != 0 && !e.wide() {
		return 2
	}
	return 8
}

// immediate is the immediate as the register gets it.
func (e *effects) immediate() int64 {
	if !e.wide() {
		return int64(uint32(e.in.Imm))
	}
	return e.in.Imm
}

// set gives a register a value. A stack pointer that does not come from the own frame belongs to another stack.
func (e *effects) set(r int, v value) {
	if amd64.Reg(r) == rsp && !v.framed() && v.maybe()&mayOwn == 0 {
		e.switches = true
		v = top
	}
	if amd64.Reg(r) == rsp {
		v.hearsay = false
	}
	e.s.regs[r] = v
}

// moveSP moves the stack pointer by n bytes.
func (e *effects) moveSP(n int64) { e.s.regs[rsp] = e.s.regs[rsp].add(n) }

func (e *effects) push(v value, size int64) {
	e.moveSP(-size)
	e.store(e.s.regs[rsp], v, size)
}

func (e *effects) pop(r int) {
	v := e.loadFrom(e.s.regs[rsp], e.pushSize())
	e.moveSP(e.pushSize())
	if e.pushSize() != 8 {
		v = value{may: v.maybe() | e.s.regs[r].maybe()}
	}
	e.set(r, v)
}

func (e *effects) popTo() {
	v := e.loadFrom(e.s.regs[rsp], e.pushSize())
	e.moveSP(e.pushSize())
	if e.in.Mod == 3 {
		e.set(int(e.in.RM&15), v)
		return
	}
	e.store(e.address(), v, e.pushSize()) // an address by rsp is that after the pop
}

func (e *effects) leave() {
	e.set(int(rsp), e.s.regs[amd64.RBP])
	v := e.loadFrom(e.s.regs[rsp], 8)
	e.moveSP(8)
	e.s.regs[amd64.RBP] = v
}

func (e *effects) enter() {
	size, level := e.in.Imm&0xffff, e.in.Imm>>16&31
	e.push(e.s.regs[amd64.RBP], 8)
	e.s.regs[amd64.RBP] = e.s.regs[rsp]
	e.moveSP(-size - 8*level)
}

// move covers mov, xchg and lea; false for sizes that are not followed.
func (e *effects) move(op uint8) bool {
	in := e.in
	reg, rm := int(in.Reg&15), int(in.RM&15)
	if !e.wide() {
		return false
	}
	switch {
	case op == 0x8D:
		e.set(reg, e.address())
	case op == 0x87 && in.Mod == 3:
		return e.exchange(reg, rm)
	case op == 0x87:
		at, v := e.address(), e.s.regs[reg]
		old := e.loadFrom(at, 8)
		e.store(at, v, 8)
		e.set(reg, old)
	case op == 0x8B && in.Mod == 3:
		e.set(reg, e.s.regs[rm])
	case op == 0x8B:
		e.set(reg, e.load(8))
	case in.Mod == 3:
		e.set(rm, e.s.regs[reg])
	default:
		e.store(e.address(), e.s.regs[reg], 8)
	}
	return true
}

func (e *effects) exchange(a, b int) bool {
	if !e.wide() {
		return false
	}
	x, y := e.s.regs[a], e.s.regs[b]
	e.set(a, y)
	e.set(b, x)
	return true
}

func (e *effects) moveImmediate() bool {
	in := e.in
	v := value{kind: constant, off: e.immediate()}
	switch {
	case in.Prefixes&amd64.Opsize66 != 0 && !e.wide():
		return false
	case in.Mod == 3:
		e.set(int(in.RM&15), v)
	case e.wide():
		e.store(e.address(), v, 8)
	default:
		e.store(e.address(), value{}, 4)
	}
	return true
}

// arithmetic covers what moves the stack pointer, and clears registers; false for all else.
func (e *effects) arithmetic(op uint8) bool {
	in := e.in
	reg, rm := int(in.Reg&15), int(in.RM&15)
	if (op == 0x31 || op == 0x33) && in.Mod == 3 && reg == rm && in.Prefixes&amd64.Opsize66 == 0 {
		e.set(rm, value{kind: constant})
		return true
	}
	if !e.wide() || in.Mod != 3 && op != 0x03 && op != 0x2B {
		return false
	}
	group := in.Reg & 7
	switch op {
	case 0x81, 0x83:
		switch group {
		case 0:
			e.sum(rm, e.s.regs[rm].add(in.Imm), value{})
		case 5:
			e.sum(rm, e.s.regs[rm].add(-in.Imm), value{})
		case 4:
			return e.align(rm)
		default:
			return false
		}
	case 0xFF:
		switch group {
		case 0:
			e.sum(rm, e.s.regs[rm].add(1), value{})
		case 1:
			e.sum(rm, e.s.regs[rm].add(-1), value{})
		default:
			return false
		}
	case 0x21:
		return e.align(rm)
	case 0x23:
		return e.align(reg)
	case 0x01:
		e.sum(rm, plus(e.s.regs[rm], e.s.regs[reg], 1), e.s.regs[reg])
	case 0x29:
		e.sum(rm, plus(e.s.regs[rm], e.s.regs[reg], -1), e.s.regs[reg])
	case 0x03, 0x2B:
		other, sign := value{may: mayStack}, int64(1)
		if in.Mod == 3 {
			other = e.s.regs[rm]
		}
		if op == 0x2B {
			sign = -1
		}
		e.sum(reg, plus(e.s.regs[reg], other, sign), other)
	default:
		return false
	}
	return true
}

// plus adds or subtracts where one of the two is a number.
func plus(a, b value, sign int64) value {
	switch {
	case b.kind == constant:
		return a.add(sign * b.off)
	case a.kind == constant && sign > 0:
		return b.add(a.off)
	}
	return value{may: a.maybe() | b.maybe()}
}

// sum gives a register a sum. A stack pointer moved by what is not known stands at a new place of the own frame.
func (e *effects) sum(r int, v, by value) {
	if amd64.Reg(r) == rsp && !v.framed() {
		if e.s.regs[rsp].framed() && by.maybe()&mayOwn == 0 {
			e.anchor(r)
			return
		}
		v = top
	}
	e.s.regs[r] = v
}

// align covers and: an address in the frame is rounded down.
func (e *effects) align(r int) bool {
	if !e.s.regs[r].framed() {
		return false
	}
	e.anchor(r)
	return true
}

// anchor makes this instruction stand for the place that a register now leads to.
func (e *effects) anchor(r int) {
	e.s.forget(e.id)
	e.s.regs[r] = value{kind: anchored, id: e.id}
}
