package lint

import "github.com/callreel/callreel/isa/amd64"

// onAMD64 is effects with the instruction at hand.
type onAMD64 struct {
	*effects
	in *amd64.Inst
}

const rsp = amd64.RSP

// Linux's numbers of the system calls that give a thread another stack.
const (
	sysClone  = 56
	sysClone3 = 435
)

func (e onAMD64) step() {
	s, in := e.s, e.in
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
func (e onAMD64) call() {
	if to, ok := e.in.Target(e.addr); ok && to == e.addr+uint64(e.in.Len) {
		e.push(value{}, 8) // reads its own address
		return
	}
	e.called()
}

// primary covers the instructions of the one-byte map that move the stack pointer or copy registers; false for others.
func (e onAMD64) primary() bool {
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

func (e onAMD64) wide() bool { return e.in.REX&amd64.RexW != 0 }

func (e onAMD64) pushSize() int64 {
	if e.in.Prefixes&amd64.Opsize66 != 0 && !e.wide() {
		return 2
	}
	return 8
}

// immediate is the immediate as the register gets it.
func (e onAMD64) immediate() int64 {
	if !e.wide() {
		return int64(uint32(e.in.Imm))
	}
	return e.in.Imm
}

func (e onAMD64) push(v value, size int64) {
	e.moveSP(-size)
	e.store(e.s.regs[rsp], v, size)
}

func (e onAMD64) pop(r int) {
	v := e.loadFrom(e.s.regs[rsp], e.pushSize())
	e.moveSP(e.pushSize())
	if e.pushSize() != 8 {
		v = value{may: v.maybe() | e.s.regs[r].maybe()}
	}
	e.set(r, v)
}

func (e onAMD64) popTo() {
	v := e.loadFrom(e.s.regs[rsp], e.pushSize())
	e.moveSP(e.pushSize())
	if e.in.Mod == 3 {
		e.set(int(e.in.RM&15), v)
		return
	}
	e.store(e.address(), v, e.pushSize()) // an address by rsp is that after the pop
}

func (e onAMD64) leave() {
	e.set(int(rsp), e.s.regs[amd64.RBP])
	v := e.loadFrom(e.s.regs[rsp], 8)
	e.moveSP(8)
	e.s.regs[amd64.RBP] = v
}

func (e onAMD64) enter() {
	size, level := e.in.Imm&0xffff, e.in.Imm>>16&31
	e.push(e.s.regs[amd64.RBP], 8)
	e.s.regs[amd64.RBP] = e.s.regs[rsp]
	e.moveSP(-size - 8*level)
}

// move covers mov, xchg and lea; false for sizes that are not followed.
func (e onAMD64) move(op uint8) bool {
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

func (e onAMD64) exchange(a, b int) bool {
	if !e.wide() {
		return false
	}
	x, y := e.s.regs[a], e.s.regs[b]
	e.set(a, y)
	e.set(b, x)
	return true
}

func (e onAMD64) moveImmediate() bool {
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
func (e onAMD64) arithmetic(op uint8) bool {
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

// align covers and: an address in the frame is rounded down.
func (e onAMD64) align(r int) bool {
	if !e.s.regs[r].framed() {
		return false
	}
	e.anchor(r)
	return true
}
