package lint

import (
	"fmt"

	"github.com/callreel/callreel/cfi"
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
	described := uint64(0)
	for k := range r.Regs {
		rule := &r.Regs[k]
		switch reg, ok := c.p.general(rule.Reg); {
		case rule.Reg == r.RAReg:
			c.note(n, s, r, int(c.p.ra), c.ruleOfRA(r, &rule.Rule), known, m)
		case ok && reg == c.p.sp:
			c.stackPointer(n, s, &rule.Rule, m)
		case ok:
			described |= 1 << reg
			c.note(n, s, r, reg, &rule.Rule, known, m)
		default:
			c.other(s, rule, known, m)
		}
	}
	if r.RA().Kind == cfi.Unspecified {
		c.note(n, s, r, int(c.p.ra), c.ruleOfRA(r, &cfi.Rule{}), known, m)
	}
	for reg := range s.regs {
		if c.p.calleeSaved>>reg&1 != 0 && described>>reg&1 == 0 {
			c.note(n, s, r, reg, &cfi.Rule{}, known, m)
		}
	}
}

// ruleOfRA is the rule of the return address, as that of another register where the CIE names another one for it.
func (c *comparison) ruleOfRA(r *row, rule *cfi.Rule) *cfi.Rule {
	if !c.p.keepsRA() || r.RAReg == c.p.dwarf(int(c.p.ra)) || rule.Kind != cfi.Unspecified && rule.Kind != cfi.SameValue {
		return rule
	}
	return &cfi.Rule{Kind: cfi.Register, Reg: uint16(r.RAReg)}
}

// note compares one rule and notes what that gave.
func (c *comparison) note(n *node, s *state, r *row, bit int, rule *cfi.Rule, known bool, m *mark) {
	switch got, v := c.judge(n, s, bit, rule, known); got {
	case right:
		if i := c.signing(n, r, bit, v); i != nil {
			m.set(bit, i)
			return
		}
		m.right |= 1 << bit
	case wrong:
		kind := WrongRegister
		if bit == int(c.p.ra) {
			kind = WrongRA
		}
		says, truth, directive := s.describe(bit, rule)
		m.set(bit, &issue{kind: kind, says: says, truth: truth, directive: directive})
	}
}

// judge compares the rule of register bit with where its value on entry is. It returns what the rule gives, where that is known.
func (c *comparison) judge(n *node, s *state, bit int, rule *cfi.Rule, known bool) (verdict, value) {
	id := int32(bit)
	var v value
	if c.switches && rule.Kind != cfi.Offset && rule.Kind != cfi.Expression {
		return notKnown, v // registers may be those of the stack that it switches to
	}
	if c.effects.installs && id == c.p.ra {
		return notKnown, v
	}
	switch rule.Kind {
	case cfi.Unspecified, cfi.SameValue:
		if bit == returnAddress {
			return wrong, v // the column has no register that could be the same
		}
		if c.p.calleeSaved>>bit&1 == 0 && id != c.p.ra && rule.Kind == cfi.Unspecified {
			return notKnown, v
		}
		v = s.regs[bit]
	case cfi.Undefined:
		if id != c.p.ra && c.p.calleeSaved>>bit&1 != 0 && s.regs[bit].holds(id) {
			return wrong, v
		}
		return notKnown, v
	case cfi.Offset:
		if !known {
			return notKnown, v
		}
		v = s.at(place{fromCFA, rule.Offset})
	case cfi.Register:
		reg, ok := c.p.general(uint32(rule.Reg))
		if !ok {
			return notKnown, v
		}
		v = s.regs[reg]
	case cfi.Expression:
		at, ok := s.evaluate(rule.Expr, n.addr, value{kind: onStack})
		if !ok || !at.framed() {
			return c.try(s, n.addr, rule, true, value{kind: entry, id: id}), v
		}
		v = s.at(placeOf(at))
	case cfi.ValExpression:
		var ok bool
		if v, ok = s.evaluate(rule.Expr, n.addr, value{kind: onStack}); !ok {
			return c.try(s, n.addr, rule, true, value{kind: entry, id: id}), v
		}
	case cfi.ValOffset:
		v = value{kind: onStack, off: rule.Offset}
	default:
		return notKnown, v
	}
	switch {
	case v.holds(id):
		return right, v
	case c.p.cannotHold(v, id) && c.followed(bit):
		return wrong, v
	}
	return notKnown, v
}

// followed says whether a register's value on entry never went to where it cannot be followed.
func (c *comparison) followed(bit int) bool {
	any := uint64(anyEscaped)
	if c.p.mayHold(int32(bit)) == mayArg {
		any = anyArgEscaped
	}
	return c.escaped&(1<<bit|any) == 0 || bit == returnAddress && c.escaped&anyEscaped == 0
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
		m.right |= 1 << c.p.sp
		return
	}
	if v.kind == onStack || v.kind == entry || v.kind == never {
		name := c.p.name(c.p.sp)
		m.set(c.p.sp, &issue{kind: WrongRegister, says: name + "=" + rule.Format(c.p.names), truth: name + "=cfa+0", directive: ".cfi_val_offset " + name + ", 0"})
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
	name := c.p.names(rule.Reg)
	i := &issue{kind: WrongRegister, delta: int64(rule.Reg), says: name + "=" + rule.Format(c.p.names)}
	switch {
	case v.kind == entry:
		holder := "ra"
		if v.id < returnAddress {
			holder = c.p.asm(int(v.id))
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
	name, asm := "ra", s.p.asm(bit)
	if int32(bit) != s.p.ra {
		name = s.p.name(bit)
	}
	says = name + "=same"
	if rule.Kind != cfi.Unspecified {
		says = name + "=" + rule.Format(s.p.names)
	}
	reg, inReg := s.inRegister(int32(bit))
	at, saved := s.inMemory(int32(bit))
	asSaid := rule.Kind == cfi.Unspecified || rule.Kind == cfi.SameValue || rule.Kind == cfi.Register
	switch {
	case saved && at.anchor == fromCFA && !(inReg && asSaid):
		return says, fmt.Sprintf("%s=[cfa%+d]", name, at.off), fmt.Sprintf(".cfi_offset %s, %d", asm, at.off)
	case inReg && reg == bit:
		return says, name + "=same", ".cfi_same_value " + asm
	case inReg:
		return says, fmt.Sprintf("%s=%s", name, s.p.name(reg)), fmt.Sprintf(".cfi_register %s, %s", asm, s.p.asm(reg))
	case saved:
		return says, name + " is saved in the aligned frame", ""
	}
	return says, name + " is lost", ".cfi_undefined " + asm
}
