package lint

import (
	"bytes"
	"errors"
	"sort"

	"github.com/callreel/callreel/cfi"
)

// row is a row of an FDE, kept.
type row struct {
	cfi.Row
}

// errTooManyRules is the error for rows that are larger than any program needs.
var errTooManyRules = errors.New("rows have more rules than the file is large")

// rowsOf returns the rows of an FDE; those before an error beside it. It takes their rules off budget, and keeps no more.
func rowsOf(m *cfi.Machine, f *cfi.FDE, budget *int) ([]row, error) {
	var rows []row
	err := m.Rows(f, func(r *cfi.Row) bool {
		if *budget -= 1 + len(r.Regs); *budget < 0 {
			return false
		}
		rows = append(rows, row{r.Clone()})
		return true
	})
	if *budget < 0 {
		return nil, errTooManyRules
	}
	return rows, err
}

// rowAt returns the row of an address, nil where there is none.
func (p *part) rowAt(addr uint64) *row {
	k := sort.Search(len(p.rows), func(k int) bool { return p.rows[k].End > addr })
	if k == len(p.rows) || p.rows[k].Start > addr {
		return nil
	}
	return &p.rows[k]
}

// sameRules says whether two rows say the same.
func (r *row) sameRules(o *row) bool {
	if r == o {
		return true
	}
	return sameRule(&r.CFA, &o.CFA) && r.sameRegisters(o)
}

// sameRegisters says whether two rows say the same of all registers.
func (r *row) sameRegisters(o *row) bool {
	if len(r.Regs) != len(o.Regs) || r.RASigned != o.RASigned {
		return false
	}
	for k := range r.Regs {
		if r.Regs[k].Reg != o.Regs[k].Reg || !sameRule(&r.Regs[k].Rule, &o.Regs[k].Rule) {
			return false
		}
	}
	return true
}

func sameRule(a, b *cfi.Rule) bool {
	computed := a.Kind == cfi.Expression || a.Kind == cfi.ValExpression
	return a.Kind == b.Kind && a.Reg == b.Reg && (computed || a.Offset == b.Offset) && bytes.Equal(a.Expr, b.Expr)
}

// entersByCall says whether the row is what holds when a call enters a function.
func (p *processor) entersByCall(r *row) bool {
	ra := r.RA()
	if !p.bySP(&r.CFA) || r.CFA.Offset != p.entryCFA || r.RASigned {
		return false
	}
	if p.keepsRA() {
		return ra.Kind == cfi.Unspecified || ra.Kind == cfi.SameValue
	}
	return ra.Kind == cfi.Offset && ra.Offset == -p.entryCFA
}

// stateOf is the state that a row describes, as far as it says anything. bKey says with which key return addresses are signed.
func (p *processor) stateOf(r *row, bKey bool) *state {
	s := p.nothing()
	if r.CFA.Kind == cfi.RegOffset {
		if reg, ok := p.general(uint32(r.CFA.Reg)); ok {
			s.regs[reg] = value{kind: onStack, off: -r.CFA.Offset}
		}
	}
	ra := p.entry(p.ra)
	ra.signed = signatureOf(r, bKey)
	for k := range s.regs {
		if (p.calleeSaved>>k&1 != 0 || int32(k) == p.ra) && !s.regs[k].framed() {
			if rule := r.Reg(p.dwarf(k)); rule.Kind == cfi.Unspecified || rule.Kind == cfi.SameValue {
				s.regs[k] = p.entry(int32(k))
				if int32(k) == p.ra {
					s.regs[k] = ra
				}
			}
		}
	}
	for _, rule := range r.Regs {
		if rule.Kind != cfi.Offset {
			continue
		}
		if rule.Reg == r.RAReg {
			s.put(place{fromCFA, rule.Offset}, ra)
		} else if reg, ok := p.general(rule.Reg); ok {
			s.put(place{fromCFA, rule.Offset}, p.entry(int32(reg)))
		}
	}
	return s
}
