package cfi

import (
	"fmt"
	"strconv"
)

// RuleKind says how a value of the caller's frame is found (DWARF 5 §6.4.1).
type RuleKind uint8

// The kinds of rules.
const (
	// Unspecified: the program says nothing; the ABI's default holds, which is
	// "same value" for callee-saved registers.
	Unspecified RuleKind = iota
	// Undefined: the value cannot be recovered. For the return address this
	// means the outermost frame.
	Undefined
	// SameValue: unchanged.
	SameValue
	// Offset: stored at address CFA+Offset.
	Offset
	// ValOffset: is CFA+Offset.
	ValOffset
	// Register: is in register Reg.
	Register
	// Expression: stored at the address that Expr computes, with the CFA on its
	// stack.
	Expression
	// ValExpression: is what Expr computes, with the CFA on its stack; when it is
	// the CFA's own rule, with an empty one.
	ValExpression
	// RegOffset: is register Reg + Offset. Only the CFA has this rule.
	RegOffset
)

// A Rule tells how to find one value of the caller's frame.
type Rule struct {
	Kind   RuleKind
	Reg    uint16 // DWARF number of a register, for Register and RegOffset
	Offset int64  // bytes, for Offset, ValOffset and RegOffset; means nothing for the others
	Expr   []byte // a DWARF expression, for Expression and ValExpression; aliases the section

	bigEndian, short bool // how numbers in Expr are written: byte order; addresses of 4 bytes
}

// NameFunc gives a register's name by its DWARF number, or "" for "r" and the
// number. Which names hold depends on the architecture.
type NameFunc func(reg uint32) string

// name applies a NameFunc that may be nil.
func (names NameFunc) name(reg uint32) string {
	if names != nil {
		if s := names(reg); s != "" {
			return s
		}
	}
	return "r" + strconv.FormatUint(uint64(reg), 10)
}

// String writes the rule with numbered registers; see Format.
func (r Rule) String() string { return r.Format(nil) }

// Format writes the rule to be read: "rsp+8", "[cfa-16]", "cfa+0", "rbx", "same",
// "undefined", "[expr(…)]" for a value stored at a computed address and "expr(…)"
// for a computed value. It is "" for Unspecified.
func (r Rule) Format(names NameFunc) string {
	switch r.Kind {
	case Undefined:
		return "undefined"
	case SameValue:
		return "same"
	case Offset:
		return fmt.Sprintf("[cfa%+d]", r.Offset)
	case ValOffset:
		return fmt.Sprintf("cfa%+d", r.Offset)
	case Register:
		return names.name(uint32(r.Reg))
	case RegOffset:
		return fmt.Sprintf("%s%+d", names.name(uint32(r.Reg)), r.Offset)
	case Expression:
		return "[expr(" + formatExpr(&r, names) + ")]"
	case ValExpression:
		return "expr(" + formatExpr(&r, names) + ")"
	}
	return ""
}
