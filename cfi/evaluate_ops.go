package cfi

import "fmt"

// The operations that are carried out (DWARF 5 §7.7.1, table 7.9).
const (
	exprAddr       = 0x03
	exprDeref      = 0x06
	exprConst1U    = 0x08
	exprConst1S    = 0x09
	exprConst2U    = 0x0a
	exprConst2S    = 0x0b
	exprConst4U    = 0x0c
	exprConst4S    = 0x0d
	exprConst8U    = 0x0e
	exprConst8S    = 0x0f
	exprConstU     = 0x10
	exprConstS     = 0x11
	exprDup        = 0x12
	exprDrop       = 0x13
	exprOver       = 0x14
	exprPick       = 0x15
	exprSwap       = 0x16
	exprRot        = 0x17
	exprAbs        = 0x19
	exprAnd        = 0x1a
	exprDiv        = 0x1b
	exprMinus      = 0x1c
	exprMod        = 0x1d
	exprMul        = 0x1e
	exprNeg        = 0x1f
	exprNot        = 0x20
	exprOr         = 0x21
	exprPlus       = 0x22
	exprPlusUConst = 0x23
	exprShl        = 0x24
	exprShr        = 0x25
	exprShra       = 0x26
	exprXor        = 0x27
	exprBra        = 0x28
	exprEq         = 0x29
	exprNe         = 0x2e
	exprSkip       = 0x2f
	exprDerefSize  = 0x94
	exprNop        = 0x96
)

// step carries out one operation, whose operands are at the cursor.
func (e *Evaluator) step(op byte) error {
	switch {
	case op >= exprLit0 && op < exprReg0:
		return e.push(uint64(op - exprLit0))
	case op >= exprReg0 && op < exprBreg0:
		return e.register(op, uint32(op-exprReg0), 0)
	case op >= exprBreg0 && op < exprRegx:
		off, ok := e.code.sleb()
		if !ok {
			return ErrExprTruncated
		}
		return e.register(op, uint32(op-exprBreg0), off)
	case op >= exprConst1U && op <= exprConstS, op == exprAddr:
		return e.constant(op)
	case op >= exprDup && op <= exprRot:
		return e.arrange(op)
	case op >= exprAbs && op <= exprXor:
		return e.arithmetic(op)
	case op >= exprBra && op <= exprSkip:
		return e.compareOrBranch(op)
	}
	switch op {
	case exprNop:
		return nil
	case exprRegx, exprBregx:
		reg, ok := register(&e.code)
		var off int64
		ok2 := true
		if op == exprBregx {
			off, ok2 = e.code.sleb()
		}
		if !ok || !ok2 {
			return ErrExprTruncated
		}
		return e.register(op, reg, off)
	case exprDeref:
		return e.load(op, e.size)
	case exprDerefSize:
		n, ok := e.code.u8()
		if !ok {
			return ErrExprTruncated
		}
		return e.load(op, int(n))
	}
	if _, named := refusedOps[op]; named {
		return ErrExprNotAllowed
	}
	return ErrExprUnknown
}

// constant pushes an operand.
func (e *Evaluator) constant(op byte) error {
	c := &e.code
	switch op {
	case exprAddr:
		return e.pushRead(c.word(e.size))
	case exprConst1U, exprConst2U, exprConst4U, exprConst8U:
		return e.pushRead(c.fixed(1 << ((op - exprConst1U) / 2)))
	case exprConst1S:
		v, ok := c.u8()
		return e.pushRead(uint64(int8(v)), ok)
	case exprConst2S:
		v, ok := c.u16()
		return e.pushRead(uint64(int16(v)), ok)
	case exprConst4S:
		v, ok := c.u32()
		return e.pushRead(uint64(int32(v)), ok)
	case exprConst8S:
		return e.pushRead(c.u64())
	case exprConstU:
		return e.pushRead(c.uleb())
	}
	v, ok := c.sleb()
	return e.pushRead(uint64(v), ok)
}

// arrange carries out the operations that copy, drop and exchange values.
func (e *Evaluator) arrange(op byte) error {
	need, pick := 1, 0
	switch op {
	case exprOver:
		need, pick = 2, 1
	case exprSwap:
		need = 2
	case exprRot:
		need = 3
	case exprPick:
		n, ok := e.code.u8()
		if !ok {
			return ErrExprTruncated
		}
		need, pick = int(n)+1, int(n)
	}
	if e.depth < need {
		return ErrExprUnderflow
	}
	top := e.depth - 1
	switch s := &e.stack; op {
	case exprDrop:
		e.depth--
	case exprSwap:
		s[top], s[top-1] = s[top-1], s[top]
	case exprRot:
		s[top], s[top-1], s[top-2] = s[top-1], s[top-2], s[top]
	default:
		return e.push(s[top-pick])
	}
	return nil
}

// arithmetic carries out what computes (DWARF 5 §2.5.1.4). Values have the size of
// an address; div, shra, abs and neg take them as signed.
func (e *Evaluator) arithmetic(op byte) error {
	b, err := e.pop()
	if err != nil {
		return err
	}
	switch op {
	case exprAbs:
		if e.signed(b) < 0 {
			b = -b
		}
		return e.push(b)
	case exprNeg:
		return e.push(-b)
	case exprNot:
		return e.push(^b)
	case exprPlusUConst:
		v, ok := e.code.uleb()
		return e.pushRead(b+v, ok)
	}
	a, err := e.pop()
	if err != nil {
		return err
	}
	if b == 0 && (op == exprDiv || op == exprMod) {
		return ErrExprDivision
	}
	return e.push(e.binary(op, a, b))
}

func (e *Evaluator) binary(op byte, a, b uint64) uint64 {
	switch op {
	case exprAnd:
		return a & b
	case exprDiv:
		x, y := e.signed(a), e.signed(b)
		if y == -1 {
			return -a // the least number has no counterpart: it wraps
		}
		return uint64(x / y)
	case exprMinus:
		return a - b
	case exprMod:
		return a % b
	case exprMul:
		return a * b
	case exprOr:
		return a | b
	case exprPlus:
		return a + b
	case exprShl:
		return a << min(b, 64)
	case exprShr:
		return a >> min(b, 64)
	case exprShra:
		return uint64(e.signed(a) >> min(b, 63))
	}
	return a ^ b
}

// compareOrBranch carries out the control flow (DWARF 5 §2.5.1.5).
func (e *Evaluator) compareOrBranch(op byte) error {
	if op == exprBra || op == exprSkip {
		off, ok := e.code.u16()
		if !ok {
			return ErrExprTruncated
		}
		if op == exprBra {
			if v, err := e.pop(); err != nil || v == 0 {
				return err
			}
		}
		return e.branch(uint64(off))
	}
	b, err := e.pop()
	if err != nil {
		return err
	}
	a, err := e.pop()
	if err != nil {
		return err
	}
	x, y := e.signed(a), e.signed(b)
	holds := [...]bool{x == y, x >= y, x > y, x <= y, x < y, x != y}[op-exprEq]
	if holds {
		return e.push(1)
	}
	return e.push(0)
}

// refusedOps names the operations that have no place in call frame information:
// they need a unit, a location that is no address, an entry value, an object, a
// thread or the CFA itself (DWARF 5 §6.4.2).
var refusedOps = map[byte]string{
	0x18: "xderef", 0x91: "fbreg", 0x93: "piece", 0x95: "xderef_size", 0x97: "push_object_address",
	0x98: "call2", 0x99: "call4", 0x9a: "call_ref", 0x9b: "form_tls_address", 0x9c: "call_frame_cfa",
	0x9d: "bit_piece", 0x9e: "implicit_value", 0x9f: "stack_value", 0xa0: "implicit_pointer", 0xa1: "addrx",
	0xa2: "constx", 0xa3: "entry_value", 0xa4: "const_type", 0xa5: "regval_type", 0xa6: "deref_type",
	0xa7: "xderef_type", 0xa8: "convert", 0xa9: "reinterpret", 0xe0: "GNU_push_tls_address",
	0xf0: "GNU_uninit", 0xf1: "GNU_encoded_addr", 0xf2: "GNU_implicit_pointer", 0xf3: "GNU_entry_value",
	0xf4: "GNU_const_type", 0xf5: "GNU_regval_type", 0xf6: "GNU_deref_type", 0xf7: "GNU_convert",
	0xf9: "GNU_reinterpret", 0xfa: "GNU_parameter_ref", 0xfb: "GNU_addr_index", 0xfc: "GNU_const_index",
	0xfd: "GNU_variable_value",
}

// opName names an operation as DWARF does, without the prefix DW_OP_.
func opName(op byte) string {
	switch {
	case op >= exprLit0 && op < exprReg0:
		return fmt.Sprintf("lit%d", op-exprLit0)
	case op >= exprReg0 && op < exprBreg0:
		return fmt.Sprintf("reg%d", op-exprReg0)
	case op >= exprBreg0 && op < exprRegx:
		return fmt.Sprintf("breg%d", op-exprBreg0)
	case op == exprRegx:
		return "regx"
	case op == exprBregx:
		return "bregx"
	}
	if known, ok := exprOps[op]; ok {
		return known.name
	}
	if name, ok := refusedOps[op]; ok {
		return name
	}
	return fmt.Sprintf("operation %#x", op)
}
