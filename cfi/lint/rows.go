package lint

import (
	"bytes"
	"errors"
	"sort"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
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
	if !sameRule(&r.CFA, &o.CFA) || len(r.Regs) != len(o.Regs) {
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
func (r *row) entersByCall() bool {
	ra := r.RA()
	return r.CFA.Kind == cfi.RegOffset && r.CFA.Reg == dwarfRSP && r.CFA.Offset == 8 && ra.Kind == cfi.Offset && ra.Offset == -8
}

// The DWARF number of the stack pointer (System V AMD64 ABI figure 3.36).
const dwarfRSP = 7

// stateOf is the state that a row describes, as far as it says anything.
func stateOf(r *row) *state {
	s := &state{overflow: true}
	for k := range s.regs {
		s.regs[k] = top
	}
	if r.CFA.Kind == cfi.RegOffset {
		if reg, ok := general(uint32(r.CFA.Reg)); ok {
			s.regs[reg] = value{kind: onStack, off: -r.CFA.Offset}
		}
	}
	for k := range s.regs {
		if calleeSaved>>k&1 != 0 && !s.regs[k].framed() {
			if rule := r.Reg(dwarfOf(k)); rule.Kind == cfi.Unspecified || rule.Kind == cfi.SameValue {
				s.regs[k] = value{kind: entry, id: int32(k)}
			}
		}
	}
	for _, rule := range r.Regs {
		if rule.Kind != cfi.Offset {
			continue
		}
		if reg, ok := general(rule.Reg); ok {
			s.put(place{fromCFA, rule.Offset}, value{kind: entry, id: int32(reg)})
		} else if rule.Reg == r.RAReg {
			s.put(place{fromCFA, rule.Offset}, value{kind: entry, id: returnAddress})
		}
	}
	return s
}

// general returns the general register with a DWARF number.
func general(n uint32) (amd64.Reg, bool) {
	if n > 15 {
		return 0, false
	}
	return amd64.RegFromDWARF(int(n))
}

// dwarfOf returns the DWARF number of a general register.
func dwarfOf(r int) uint32 { return uint32(amd64.Reg(r).DWARF()) }
