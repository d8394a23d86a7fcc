package cfi

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// The operations that carry a number in themselves, and those with a register
// (DWARF 5 §7.7.1).
const (
	exprLit0  = 0x30
	exprReg0  = 0x50
	exprBreg0 = 0x70
	exprRegx  = 0x90
	exprBregx = 0x92
)

// exprOp is an operation's name and its operand: "" for none, the size in bytes of
// a fixed one ("a" for an address), "u" or "s" for LEB128; signed when it starts
// with a minus sign.
type exprOp struct{ name, operand string }

// exprOps names the other operations that call frame instructions may use (DWARF 5
// §6.4.2 forbids those that need a unit or a frame base).
var exprOps = map[byte]exprOp{
	0x03: {"addr", "a"}, 0x06: {"deref", ""}, 0x08: {"const1u", "1"}, 0x09: {"const1s", "-1"},
	0x0a: {"const2u", "2"}, 0x0b: {"const2s", "-2"}, 0x0c: {"const4u", "4"}, 0x0d: {"const4s", "-4"},
	0x0e: {"const8u", "8"}, 0x0f: {"const8s", "-8"}, 0x10: {"constu", "u"}, 0x11: {"consts", "s"},
	0x12: {"dup", ""}, 0x13: {"drop", ""}, 0x14: {"over", ""}, 0x15: {"pick", "1"}, 0x16: {"swap", ""},
	0x17: {"rot", ""}, 0x19: {"abs", ""}, 0x1a: {"and", ""}, 0x1b: {"div", ""}, 0x1c: {"minus", ""},
	0x1d: {"mod", ""}, 0x1e: {"mul", ""}, 0x1f: {"neg", ""}, 0x20: {"not", ""}, 0x21: {"or", ""},
	0x22: {"plus", ""}, 0x23: {"plus_uconst", "u"}, 0x24: {"shl", ""}, 0x25: {"shr", ""}, 0x26: {"shra", ""},
	0x27: {"xor", ""}, 0x28: {"bra", "-2"}, 0x29: {"eq", ""}, 0x2a: {"ge", ""}, 0x2b: {"gt", ""},
	0x2c: {"le", ""}, 0x2d: {"lt", ""}, 0x2e: {"ne", ""}, 0x2f: {"skip", "-2"}, 0x94: {"deref_size", "1"},
	0x96: {"nop", ""},
}

// maxExprShown bounds how many operations of an expression are written out.
// Linkers write nine (for the PLT); hand-written ones are about as long.
const maxExprShown = 64

// formatExpr writes a rule's expression: "rsp+8; deref". An operation that is not
// known ends it, since its length is not known either.
func formatExpr(r *Rule, names NameFunc) string {
	var order binary.ByteOrder = binary.LittleEndian
	if r.bigEndian {
		order = binary.BigEndian
	}
	c := cursor{data: r.Expr, order: order}
	var parts []string
	for c.remaining() > 0 {
		if len(parts) == maxExprShown {
			parts = append(parts, "…")
			break
		}
		at := c.at
		text, ok := formatOp(&c, r.short, names)
		if !ok {
			parts = append(parts, fmt.Sprintf("damaged at byte %d", at))
			break
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// formatOp writes the operation at the cursor; short says that addresses have four
// bytes.
func formatOp(c *cursor, short bool, names NameFunc) (string, bool) {
	op, _ := c.u8()
	switch {
	case op >= exprLit0 && op < exprReg0:
		return fmt.Sprintf("%d", op-exprLit0), true
	case op >= exprReg0 && op < exprBreg0:
		return names.name(uint32(op - exprReg0)), true
	case op >= exprBreg0 && op < exprRegx:
		off, ok := c.sleb()
		return fmt.Sprintf("%s%+d", names.name(uint32(op-exprBreg0)), off), ok
	case op == exprRegx:
		reg, ok := register(c)
		return names.name(reg), ok
	case op == exprBregx:
		reg, ok := register(c)
		off, ok2 := c.sleb()
		return fmt.Sprintf("%s%+d", names.name(reg), off), ok && ok2
	}
	known, ok := exprOps[op]
	if !ok {
		return "", false
	}
	if known.operand == "" {
		return known.name, true
	}
	operand, ok := formatOperand(c, known.operand, short)
	return known.name + " " + operand, ok
}

// formatOperand writes the operand at the cursor.
func formatOperand(c *cursor, kind string, short bool) (string, bool) {
	var v uint64
	var ok bool
	switch kind {
	case "a":
		size := 8
		if short {
			size = 4
		}
		v, ok = c.word(size)
		return fmt.Sprintf("%#x", v), ok
	case "u":
		v, ok = c.uleb()
	case "s":
		var s int64
		s, ok = c.sleb()
		return fmt.Sprintf("%d", s), ok
	default:
		size := int(kind[len(kind)-1] - '0')
		v, ok = c.fixed(size)
		if kind[0] == '-' {
			unused := 64 - 8*size
			return fmt.Sprintf("%d", int64(v)<<unused>>unused), ok
		}
	}
	return fmt.Sprintf("%d", v), ok
}
