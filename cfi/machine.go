package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// maxRemembered bounds the stack of DW_CFA_remember_state. Compilers nest it once,
// hand-written assembly a few times.
const maxRemembered = 64

var (
	errRemembered  = fmt.Errorf("more than %d remembered states", maxRemembered)
	errTooManyRegs = fmt.Errorf("more than %d registers have rules", maxRegs)
	errNoRegOffset = errors.New("changes a CFA that is not a register and an offset")
	errBackward    = errors.New("goes back or beyond the address space")
	errInCIE       = errors.New("has no meaning in a CIE")
)

// ErrUnbalanced is wrapped by the error for a program that restores a state without
// having remembered one.
var ErrUnbalanced = errors.New("restore_state without a remembered state")

// A Machine runs FDEs' programs and keeps its memory from one to the next. The
// zero value is ready. It must not be used by several goroutines at once.
type Machine struct {
	row        Row
	remembered []remembered
	regs       []RegRule // of the remembered states, one after the other
	irregular  bool
}

// remembered is what DW_CFA_remember_state keeps beside the registers.
type remembered struct {
	cfa      Rule
	regs     int // where its registers begin
	raSigned bool
}

// Rows calls yield for each row of the FDE in the order of their addresses, until
// it returns false. Rows are contiguous, begin at f.Start and end at f.End, unless
// the program advances beyond that: then a row may lie behind f.End. Rows that
// cover no address are left out. The row is valid until yield returns (Row.Clone
// keeps it). On damage the rows before it have been yielded and the error names the
// instruction.
func (m *Machine) Rows(f *FDE, yield func(*Row) bool) error {
	cie := f.CIE
	if cie.initialErr != nil {
		return cie.source.programErr(f.Offset, cie.initialErr)
	}
	m.reset(cie)
	m.row.Start = f.Start
	c := cie.source.cursor(f.program)
	for c.at < len(c.data) {
		var in instruction
		from := c.at
		err := cie.next(&c, &in)
		if err == nil && in.op.isAdvance() {
			var loc uint64
			if loc, err = in.target(m.row.Start, cie.addrSize); err == nil {
				if !m.endRow(loc, yield) {
					return nil
				}
				continue
			}
		}
		if err == nil {
			err = m.apply(cie, &in)
		}
		if err != nil {
			return cie.source.programErr(f.Offset, fmt.Errorf("instruction %#x at %#x: %w", uint8(in.op), from, err))
		}
	}
	m.endRow(max(m.row.Start, f.End), yield)
	return nil
}

// endRow yields the row that ends at loc, unless it is empty, and starts the next.
func (m *Machine) endRow(loc uint64, yield func(*Row) bool) bool {
	m.row.End = loc
	if loc > m.row.Start && !yield(&m.row) {
		return false
	}
	m.row.Start = loc
	return true
}

// Remembered is the number of states that the program that was run last has
// remembered and not restored.
func (m *Machine) Remembered() int { return len(m.remembered) }

// Irregular says whether the program that was run last defines a register for a CFA
// that is an expression, which DWARF 5 §6.4.2.2 does not allow. Most unwinders put the
// offset with it that was there before the expression, as the rows do; some refuse.
func (m *Machine) Irregular() bool { return m.irregular }

// RowAt returns the row that holds pc. It is valid until the machine is used again.
func (m *Machine) RowAt(f *FDE, pc uint64) (*Row, error) {
	if !f.Contains(pc) {
		return nil, f.CIE.source.programErr(f.Offset, fmt.Errorf("%#x is outside %#x..%#x", pc, f.Start, f.End))
	}
	found := false
	err := m.Rows(f, func(r *Row) bool {
		found = pc < r.End
		return !found
	})
	if !found {
		return nil, err
	}
	return &m.row, nil
}

// Rows is Machine.Rows with a machine of its own.
func (f *FDE) Rows(yield func(*Row) bool) error {
	var m Machine
	return m.Rows(f, yield)
}

// RowAt returns a copy of the row that holds pc, which must lie in the FDE.
func (f *FDE) RowAt(pc uint64) (Row, error) {
	var m Machine
	row, err := m.RowAt(f, pc)
	if err != nil {
		return Row{}, err
	}
	return *row, nil
}

// InitialCFA returns the rule "register reg + off" that gives the CFA at f.Start,
// without looking at the rows behind it; false when it is computed otherwise or the
// program is damaged. A function's first part has the stack pointer and the size of
// a return address there, a part split off it something else.
func (f *FDE) InitialCFA() (reg uint32, off int64, ok bool) {
	cie := f.CIE
	if cie.initialErr != nil {
		return 0, 0, false
	}
	cfa := cie.initial.CFA
	var stack []Rule
	c := cie.source.cursor(f.program)
	for c.at < len(c.data) {
		var in instruction
		if cie.next(&c, &in) != nil {
			return 0, 0, false
		}
		if in.op.isAdvance() {
			if loc, err := in.target(f.Start, cie.addrSize); err != nil || loc > f.Start {
				break
			}
			continue
		}
		switch in.op {
		case opRememberState:
			if len(stack) == maxRemembered {
				return 0, 0, false
			}
			stack = append(stack, cfa)
		case opRestoreState:
			if len(stack) == 0 {
				return 0, 0, false
			}
			cfa = stack[len(stack)-1]
			stack = stack[:len(stack)-1]
		default:
			if err := in.applyCFA(cie, &cfa); err != nil {
				return 0, 0, false
			}
		}
	}
	return uint32(cfa.Reg), cfa.Offset, cfa.Kind == RegOffset
}

// target returns the address that an advance leads to.
func (in *instruction) target(loc uint64, addrSize int) (uint64, error) {
	next := in.loc
	if in.op != opSetLoc {
		next = loc + in.delta
	}
	if next < loc || next != truncate(next, addrSize) {
		return 0, errBackward
	}
	return next, nil
}

// truncate wraps an address to its size.
func truncate(v uint64, size int) uint64 {
	if size == 4 {
		return uint64(uint32(v))
	}
	return v
}

// initialRow runs a CIE's instructions and keeps what its FDEs start from.
func (m *Machine) initialRow(cie *CIE) {
	cie.initial.RAReg = cie.RAReg
	m.reset(cie)
	c := cie.source.cursor(cie.program)
	for c.at < len(c.data) {
		var in instruction
		from := c.at
		err := cie.next(&c, &in)
		if err == nil && (in.op.isAdvance() || in.op == opRestore || in.op == opRestoreExtended) {
			err = errInCIE
		}
		if err == nil {
			err = m.apply(cie, &in)
		}
		if err != nil {
			cie.initialErr = fmt.Errorf("CIE at %#x: instruction %#x at %#x: %w", cie.Offset, uint8(in.op), from, err)
			return
		}
	}
	cie.initial = m.row.Clone()
}

// reset starts from the CIE's initial rules.
func (m *Machine) reset(cie *CIE) {
	regs := append(m.row.Regs[:0], cie.initial.Regs...)
	m.row = cie.initial
	m.row.Regs = regs
	m.remembered = m.remembered[:0]
	m.regs = m.regs[:0]
	m.irregular = false
}

// apply carries out an instruction other than an advance.
func (m *Machine) apply(cie *CIE, in *instruction) error {
	rule := Rule{Offset: in.off}
	switch in.op {
	case opNop:
		return nil
	case opRememberState:
		return m.remember()
	case opRestoreState:
		return m.restore()
	case opGNUArgsSize:
		m.row.ArgsSize = in.delta
		return nil
	case opNegateRAState, opNegateRAWithPC:
		m.row.RASigned = !m.row.RASigned
		return nil
	case opOffset, opOffsetExtended, opOffsetExtendedSF, opGNUNegOffset:
		rule.Kind = Offset
	case opValOffset, opValOffsetSF:
		rule.Kind = ValOffset
	case opUndefined:
		rule.Kind = Undefined
	case opSameValue:
		rule.Kind = SameValue
	case opRegister:
		rule = Rule{Kind: Register, Reg: uint16(in.reg2)}
	case opExpression:
		rule = cie.expression(Expression, in.block)
	case opValExpression:
		rule = cie.expression(ValExpression, in.block)
	case opRestore, opRestoreExtended:
		rule = cie.initial.Reg(in.reg)
	default:
		if in.op == opDefCFARegister && m.row.CFA.Kind == ValExpression {
			m.irregular = true
		}
		return in.applyCFA(cie, &m.row.CFA)
	}
	if !m.row.set(in.reg, rule) {
		return errTooManyRegs
	}
	return nil
}

// applyCFA carries out an instruction that defines the CFA; others change nothing.
func (in *instruction) applyCFA(cie *CIE, cfa *Rule) error {
	switch in.op {
	case opDefCFA, opDefCFASF:
		*cfa = Rule{Kind: RegOffset, Reg: uint16(in.reg), Offset: in.off}
	case opDefCFAExpression:
		last := cfa.Offset
		*cfa = cie.expression(ValExpression, in.block)
		cfa.Offset = last // for the case below; it is no part of the rule
	case opDefCFARegister:
		if cfa.Kind == Unspecified {
			return errNoRegOffset
		}
		// The standard wants a register and an offset here. libgcrypt has an
		// expression before, and unwinders take the offset before that.
		*cfa = Rule{Kind: RegOffset, Reg: uint16(in.reg), Offset: cfa.Offset}
	case opDefCFAOffset, opDefCFAOffsetSF:
		if cfa.Kind != RegOffset {
			return errNoRegOffset
		}
		cfa.Offset = in.off
	}
	return nil
}

// expression makes a rule of an expression and how its numbers are written.
func (cie *CIE) expression(kind RuleKind, block []byte) Rule {
	return Rule{Kind: kind, Expr: block, bigEndian: cie.source.order == binary.BigEndian, short: cie.addrSize == 4}
}

func (m *Machine) remember() error {
	if len(m.remembered) == maxRemembered {
		return errRemembered
	}
	m.remembered = append(m.remembered, remembered{m.row.CFA, len(m.regs), m.row.RASigned})
	m.regs = append(m.regs, m.row.Regs...)
	return nil
}

func (m *Machine) restore() error {
	top := len(m.remembered) - 1
	if top < 0 {
		return ErrUnbalanced
	}
	state := &m.remembered[top]
	m.row.CFA, m.row.RASigned = state.cfa, state.raSigned
	m.row.Regs = append(m.row.Regs[:0], m.regs[state.regs:]...)
	m.regs = slices.Delete(m.regs, state.regs, len(m.regs))
	m.remembered = m.remembered[:top]
	return nil
}

// cursor reads a program; its offsets are those of the section.
func (s *source) cursor(p span) cursor {
	return cursor{data: s.data[:p.to], at: int(p.from), order: s.order}
}

// programErr names file, section and FDE.
func (s *source) programErr(offset uint64, err error) error {
	return fmt.Errorf("%s: FDE at %#x: %w", s.where(), offset, err)
}
