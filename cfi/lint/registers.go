package lint

import (
	"fmt"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
)

// verdict is what comparing a rule with a state gave.
type verdict uint8

const (
	notKnown verdict = iota
	right
	wrong
)

// registers compares the rules of the registers. Where the CFA is not known to be right, those that go by it are left out.
func (c *comparison) registers(n *node, s *state, r *row, known bool, m *mark) {
	described := uint32(0)
	for k := range r.Regs {
		rule := &r.Regs[k]
		switch reg, ok := general(rule.Reg); {
		case rule.Reg == r.RAReg:
			c.note(n, s, r, bitRA, &rule.Rule, known, m)
		case ok && reg == rsp:
			c.stackPointer(n, s, &rule.Rule, m)
		case ok:
			described |= 1 << reg
			c.note(n, s, r, int(reg), &rule.Rule, known, m)
		default:
			c.other(s, rule, known, m)
		}
	}
	if r.RA().Kind == cfi.Unspecified {
		c.note(n, s, r, bitRA, &cfi.Rule{}, known, m)
	}
	for reg := range s.regs {
		if calleeSaved>>reg&1 != 0 && described>>reg&1 == 0 {
			c.note(n, s, r, reg, &cfi.Rule{}, known, m)
		}
	}
}

// note compares one rule and notes what that gave.
func (c *comparison) note(n *node, s *state, r *row, bit int, rule *cfi.Rule, known bool, m *mark) {
	switch c.judge(n, s, bit, rule, known) {
	case right:
		m.right |= 1 << bit
	case wrong:
		kind := WrongRegister
		if bit == bitRA {
			kind = WrongRA
		}
		says, truth, directive := s.describe(bit, rule)
		m.set(bit, &issue{kind: kind, says: says, truth: truth, directive: directive})
	}
}

// judge compares the rule of register bit with where its value on entry is.
func (c *comparison) judge(n *node, s *state, bit int, rule *cfi.Rule, known bool) verdict {
	id := int32(bit)
	var v value
	if c.switches && rule.Kind != cfi.Offset && rule.Kind != cfi.Expression {
		return notKnown // registers may be those of the stack that it switches to
	}
	switch rule.Kind {
	case cfi.Unspecified, cfi.SameValue:
		if bit == bitRA {
			return wrong // the column has no register that could be the same
		}
		if calleeSaved>>bit&1 == 0 && rule.Kind == cfi.Unspecified {
			return notKnown
		}
		v = s.regs[bit]
	case cfi.Undefined:
		if bit != bitRA && calleeSaved>>bit&1 != 0 && s.regs[bit].holds(id) {
			return wrong
		}
		return notKnown
	case cfi.Offset:
		if !known {
			return notKnown
		}
		v = s.at(place{fromCFA, rule.Offset})
	case cfi.Register:
		reg, ok := general(uint32(rule.Reg))
		if !ok {
			return notKnown
		}
		v = s.regs[reg]
	case cfi.Expression:
		at, ok := s.evaluate(rule.Expr, n.addr, value{kind: onStack})
		if !ok || !at.framed() {
			return c.try(s, n.addr, rule, true, value{kind: entry, id: id})
		}
		v = s.at(placeOf(at))
	case cfi.ValExpression:
		var ok bool
		if v, ok = s.evaluate(rule.Expr, n.addr, value{kind: onStack}); !ok {
			return c.try(s, n.addr, rule, true, value{kind: entry, id: id})
		}
	case cfi.ValOffset:
		v = value{kind: onStack, off: rule.Offset}
	default:
		return notKnown
	}
	switch {
	case v.holds(id):
		return right
	case v.cannotHold(id) && c.followed(bit):
		return wrong
	}
	return notKnown
}

// followed says whether a register's value on entry never went to where it cannot be followed.
func (c *comparison) followed(bit int) bool {
	any := uint32(anyEscaped)
	if mayHold(int32(bit)) == mayArg {
		any = anyArgEscaped
	}
	return c.escaped&(1<<bit|any) == 0 || bit == bitRA && c.escaped&anyEscaped == 0
}

// stackPointer checks an explicit rule of the stack pointer, whose value in the caller is the CFA.
func (c *comparison) stackPointer(n *node, s *state, rule *cfi.Rule, m *mark) {
	v := value{may: mayAll}
	switch rule.Kind {
	case cfi.ValOffset:
		v = value{kind: onStack, off: rule.Offset}
	case cfi.Offset:
		v = s.at(place{fromCFA, rule.Offset})
	case cfi.ValExpression:
		if x, ok := s.evaluate(rule.Expr, n.addr, value{kind: onStack}); ok {
			v = x
		}
	}
	if v.kind == onStack && v.off == 0 {
		m.right |= 1 << rsp
		return
	}
	if v.kind == onStack || v.kind == entry || v.kind == never {
		m.set(int(rsp), &issue{kind: WrongRegister, says: "rsp=" + rule.Format(names), truth: "rsp=cfa+0", directive: ".cfi_val_offset rsp, 0"})
	}
}

// other checks a rule of a register that is not followed: it is wrong when the place holds another one, and when the
// function never writes there.
func (c *comparison) other(s *state, rule *cfi.RegRule, known bool, m *mark) {
	if rule.Kind != cfi.Offset || !known {
		return
	}
	at := place{fromCFA, rule.Offset}
	v := s.at(at)
	name := names(rule.Reg)
	i := &issue{kind: WrongRegister, delta: int64(rule.Reg), says: name + "=" + rule.Format(names)}
	switch {
	case v.kind == entry:
		holder := "ra"
		if v.id < returnAddress {
			holder = amd64.Reg(v.id).String()
		}
		i.truth, i.directive = fmt.Sprintf("%s is saved there", holder), fmt.Sprintf(".cfi_offset %s, %d", holder, rule.Offset)
	case c.effects.untouched(at):
		i.truth, i.directive = "the function does not write there", ".cfi_same_value "+name
	default:
		return
	}
	m.set(bitOther, i)
}

// describe says what a rule says, where the value on entry is, and the directive that would say so.
func (s *state) describe(bit int, rule *cfi.Rule) (says, truth, directive string) {
	name, asm := "ra", "rip"
	if bit < returnAddress {
		name = amd64.Reg(bit).String()
		asm = name
	}
	says = name + "=same"
	if rule.Kind != cfi.Unspecified {
		says = name + "=" + rule.Format(names)
	}
	reg, inReg := s.inRegister(int32(bit))
	at, saved := s.inMemory(int32(bit))
	asSaid := rule.Kind == cfi.Unspecified || rule.Kind == cfi.SameValue || rule.Kind == cfi.Register
	switch {
	case saved && at.anchor == fromCFA && !(inReg && asSaid):
		return says, fmt.Sprintf("%s=[cfa%+d]", name, at.off), fmt.Sprintf(".cfi_offset %s, %d", asm, at.off)
	case inReg && reg == amd64.Reg(bit):
		return says, name + "=same", ".cfi_same_value " + asm
	case inReg:
		return says, fmt.Sprintf("%s=%s", name, reg), fmt.Sprintf(".cfi_register %s, %s", asm, reg)
	case saved:
		return says, name + " is saved in the aligned frame", ""
	}
	return says, name + " is lost", ".cfi_undefined " + asm
}
