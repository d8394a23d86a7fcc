package lint

import (
	"encoding/binary"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/internal/leb128"
)

// maxExpression bounds the operations of an expression that is followed; one with branches is not.
const maxExpression = 64

// The operations that are followed (DWARF 5 §7.7.1).
const (
	opDeref      = 0x06
	opPlus       = 0x22
	opPlusUConst = 0x23
	opLit0       = 0x30
	opReg0       = 0x50
	opBreg0      = 0x70
	opBregx      = 0x92
	opNop        = 0x96
)

// evaluate computes a DWARF expression over what is known before the instruction at pc; false where something in it is
// not followed. The stack starts with the given values.
func (s *state) evaluate(expr []byte, pc uint64, stack ...value) (value, bool) {
	x := expression{s: s, code: expr, pc: pc, stack: stack}
	for steps := 0; len(x.code) > 0; steps++ {
		if steps == maxExpression || !x.step() {
			return value{}, false
		}
	}
	if len(x.stack) == 0 {
		return value{}, false
	}
	return x.stack[len(x.stack)-1], true
}

type expression struct {
	s     *state
	code  []byte
	pc    uint64
	stack []value
}

func (x *expression) push(v value) bool {
	x.stack = append(x.stack, v)
	return true
}

func (x *expression) pop() (value, bool) {
	n := len(x.stack) - 1
	if n < 0 {
		return value{}, false
	}
	v := x.stack[n]
	x.stack = x.stack[:n]
	return v, true
}

// register returns what a register holds, the program counter for the column of the return address.
func (x *expression) register(n uint64) value {
	if n == uint64(x.s.p.pc) {
		return value{kind: constant, off: int64(x.pc)}
	}
	if r, ok := x.s.p.general(uint32(min(n, 1<<16))); ok {
		return x.s.regs[r]
	}
	return top
}

func (x *expression) uleb() (uint64, bool) {
	v, n := leb128.ExactUint(x.code, 0)
	if n < 0 {
		return 0, false
	}
	x.code = x.code[n:]
	return v, true
}

func (x *expression) sleb() (int64, bool) {
	v, n := leb128.ExactInt(x.code, 0)
	if n < 0 {
		return 0, false
	}
	x.code = x.code[n:]
	return v, true
}

// number reads a little-endian constant of n bytes.
func (x *expression) number(n int, signed bool) (int64, bool) {
	if len(x.code) < n {
		return 0, false
	}
	var raw [8]byte
	copy(raw[:], x.code[:n])
	x.code = x.code[n:]
	v, unused := int64(binary.LittleEndian.Uint64(raw[:])), 64-8*n
	if v = v << unused; signed {
		return v >> unused, true
	}
	return int64(uint64(v) >> unused), true
}

// step carries out one operation.
func (x *expression) step() bool {
	op := x.code[0]
	x.code = x.code[1:]
	switch {
	case op >= opLit0 && op < opReg0:
		return x.push(value{kind: constant, off: int64(op - opLit0)})
	case op >= opReg0 && op < opBreg0:
		return x.push(x.register(uint64(op - opReg0)))
	case op >= opBreg0 && op < 0x90, op == opBregx:
		n, ok := uint64(op-opBreg0), true
		if op == opBregx {
			n, ok = x.uleb()
		}
		off, ok2 := x.sleb()
		return ok && ok2 && x.push(x.register(n).add(off))
	case op >= 0x08 && op <= 0x0f:
		v, ok := x.number(1<<((op-0x08)/2), op&1 != 0)
		return ok && x.push(value{kind: constant, off: v})
	case op == 0x10:
		v, ok := x.uleb()
		return ok && x.push(value{kind: constant, off: int64(v)})
	case op == 0x11:
		v, ok := x.sleb()
		return ok && x.push(value{kind: constant, off: v})
	case op == opNop:
		return true
	}
	return x.compute(op)
}

// compute carries out the operations on what is on the stack.
func (x *expression) compute(op byte) bool {
	b, ok := x.pop()
	if !ok {
		return false
	}
	switch op {
	case opDeref:
		if !b.framed() {
			return x.push(value{may: mayAll})
		}
		return x.push(x.s.at(placeOf(b)))
	case opPlusUConst:
		n, ok := x.uleb()
		return ok && x.push(b.add(int64(n)))
	case 0x12: // dup
		x.push(b)
		return x.push(b)
	}
	a, ok := x.pop()
	if !ok {
		return false
	}
	if op == 0x1c || op == opPlus { // minus
		sign := int64(1)
		if op == 0x1c {
			sign = -1
		}
		return x.push(plus(a, b, sign))
	}
	if a.kind != constant || b.kind != constant {
		return false
	}
	v, ok := fold(op, a.off, b.off)
	return ok && x.push(value{kind: constant, off: v})
}

// fold computes with numbers, as the linkers' rule for PLT entries does.
func fold(op byte, a, b int64) (int64, bool) {
	truth := func(holds bool) (int64, bool) {
		if holds {
			return 1, true
		}
		return 0, true
	}
	switch op {
	case 0x1a:
		return a & b, true
	case 0x1e:
		return a * b, true
	case 0x21:
		return a | b, true
	case 0x24:
		return a << min(uint64(b), 64), true
	case 0x25:
		return int64(uint64(a) >> min(uint64(b), 64)), true
	case 0x27:
		return a ^ b, true
	case 0x29:
		return truth(a == b)
	case 0x2a:
		return truth(a >= b)
	case 0x2b:
		return truth(a > b)
	case 0x2c:
		return truth(a <= b)
	case 0x2d:
		return truth(a < b)
	case 0x2e:
		return truth(a != b)
	}
	return 0, false
}

// cfaOf returns what a row's rule gives as the CFA.
func (s *state) cfaOf(rule *cfi.Rule, pc uint64) (value, bool) {
	switch rule.Kind {
	case cfi.RegOffset:
		if r, ok := s.p.general(uint32(rule.Reg)); ok {
			return s.regs[r].add(rule.Offset), true
		}
	case cfi.ValExpression:
		return s.evaluate(rule.Expr, pc)
	}
	return value{}, false
}
