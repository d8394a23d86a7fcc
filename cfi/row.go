package cfi

import (
	"slices"
	"strings"
)

// A Row is the rules for the code addresses [Start, End).
type Row struct {
	Start, End uint64
	CFA        Rule      // RegOffset or ValExpression
	Regs       []RegRule // sorted by register; those left out are Unspecified
	RAReg      uint32    // the register whose rule is the return address's
	ArgsSize   uint64    // bytes of arguments pushed for a call (DW_CFA_GNU_args_size)
	RASigned   bool      // AArch64: the return address is signed here
}

// RegRule is the rule of one register.
type RegRule struct {
	Reg uint32 // DWARF number
	Rule
}

// Reg returns a register's rule, Unspecified when the row has none.
func (r *Row) Reg(reg uint32) Rule {
	for k := range r.Regs {
		if r.Regs[k].Reg == reg {
			return r.Regs[k].Rule
		}
	}
	return Rule{}
}

// RA returns the rule of the return address.
func (r *Row) RA() Rule { return r.Reg(r.RAReg) }

// Clone copies the row with its registers. Expressions still alias the section.
func (r *Row) Clone() Row {
	c := *r
	c.Regs = slices.Clone(r.Regs)
	return c
}

// Format writes the rules in a line, without the addresses: "cfa=rsp+16
// rbx=[cfa-16] ra=[cfa-8]".
func (r *Row) Format(names NameFunc) string {
	var b strings.Builder
	b.WriteString("cfa=" + r.CFA.Format(names))
	for _, reg := range r.Regs {
		if name := names.name(reg.Reg); reg.Reg == r.RAReg {
			b.WriteString(" ra=")
		} else {
			b.WriteString(" " + name + "=")
		}
		b.WriteString(reg.Format(names))
	}
	return b.String()
}

// set replaces a register's rule; Unspecified removes it. False means that the row
// would hold too many.
func (r *Row) set(reg uint32, rule Rule) bool {
	k := len(r.Regs)
	for k > 0 && r.Regs[k-1].Reg >= reg {
		k--
	}
	there := k < len(r.Regs) && r.Regs[k].Reg == reg
	switch {
	case rule.Kind == Unspecified:
		if there {
			r.Regs = slices.Delete(r.Regs, k, k+1)
		}
	case there:
		r.Regs[k].Rule = rule
	case len(r.Regs) == maxRegs:
		return false
	default:
		r.Regs = slices.Insert(r.Regs, k, RegRule{reg, rule})
	}
	return true
}
