package lint

import (
	"errors"
	"fmt"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
)

// readRows runs all programs and reports those that cannot be run.
func (l *linter) readRows() {
	var m cfi.Machine
	l.first = make([]row, len(l.fdes))
	for k := range l.fdes {
		f := &l.fdes[k]
		rows, err := rowsOf(&m, f, &l.rulesBudget)
		switch {
		case errors.Is(err, cfi.ErrUnbalanced):
			l.add(Finding{Kind: Unbalanced, Address: endOf(rows, f), Says: "restore_state", Truth: "no state is remembered", Directive: ".cfi_remember_state"})
		case err != nil:
			l.add(Finding{Kind: Damaged, Address: endOf(rows, f), Says: err.Error(), Truth: "the program cannot be read"})
		case m.Irregular():
			l.add(Finding{
				Kind: Damaged, Address: f.Start, Says: "a register for a CFA that is an expression",
				Truth: "the standard wants one that is a register and an offset", Directive: ".cfi_def_cfa",
			})
		case m.Remembered() > 0:
			l.add(Finding{
				Kind: Unbalanced, Address: f.Start, Directive: ".cfi_restore_state",
				Says: fmt.Sprintf("remember_state, %d times more often than restore_state", m.Remembered()), Truth: "no state is left at the end",
			})
		}
		if n := len(rows); n > 0 && rows[n-1].End > f.End {
			l.add(Finding{
				Kind: OutsideRow, Address: f.Start,
				Says:  fmt.Sprintf("rows up to %#x", rows[n-1].End),
				Truth: fmt.Sprintf("the code ends at %#x", f.End),
			})
		}
		if bad := l.badExpression(rows); err == nil && bad != nil {
			l.add(*bad)
		}
		if len(rows) > 0 {
			l.first[k] = rows[0]
		}
	}
	for _, d := range l.table.Damage() {
		l.add(Finding{Kind: Damaged, Address: l.table.Addr() + d.Offset, Says: fmt.Sprintf("record at %#x of %s", d.Offset, l.table.Section()), Truth: d.Err.Error()})
	}
}

// badExpression returns a finding for the first expression of the rows that no unwinder can compute, whatever registers and
// memory hold.
func (l *linter) badExpression(rows []row) *Finding {
	for k := range rows {
		r := &rows[k]
		if err := l.tryExpression(&r.CFA, false); err != nil {
			return &Finding{Kind: Damaged, Address: r.Start, Says: "cfa=" + r.CFA.Format(l.names), Truth: err.Error()}
		}
		for n := range r.Regs {
			if err := l.tryExpression(&r.Regs[n].Rule, true); err != nil {
				return &Finding{Kind: Damaged, Address: r.Start, Says: r.Regs[n].Format(l.names), Truth: err.Error()}
			}
		}
	}
	return nil
}

// tryExpression computes an expression with made-up values and returns errors that do not depend on them.
func (l *linter) tryExpression(rule *cfi.Rule, withCFA bool) error {
	if rule.Kind != cfi.Expression && rule.Kind != cfi.ValExpression {
		return nil
	}
	in := cfi.EvalInput{
		HasCFA: withCFA, AddrSize: l.im.Class.AddrSize(), ByteOrder: l.im.ByteOrder,
		Reg:  func(n uint32) (uint64, bool) { return 1, l.holdsAddresses(n) },
		Read: func(_ uint64, b []byte) error { clear(b); return nil },
	}
	_, err := l.evaluator.Eval(rule.Expr, &in)
	if errors.Is(err, cfi.ErrExprDivision) || errors.Is(err, cfi.ErrExprSteps) {
		return nil
	}
	return err
}

// holdsAddresses says whether a register is one that unwinders keep. libgcc's ends the program when it is asked for another.
func (l *linter) holdsAddresses(n uint32) bool {
	const fsBase, gsBase = 58, 59 // System V AMD64 ABI, figure 3.36
	return l.im.Arch != object.AMD64 || n <= amd64.DWARFReturnAddress || n == fsBase || n == gsBase
}

// endOf returns where the rows of an FDE end.
func endOf(rows []row, f *cfi.FDE) uint64 {
	if n := len(rows); n > 0 {
		return rows[n-1].End
	}
	return f.Start
}

// structure checks the tables as such.
func (l *linter) structure(hdr cfi.Section) {
	l.overlaps()
	l.places()
	l.entryPoint()
	l.linkage()
	l.uncovered()
	if hdr.Data != nil {
		l.header(hdr)
	}
}

// overlaps reports FDEs that describe what one before them describes.
func (l *linter) overlaps() {
	var reach *cfi.FDE
	for k := range l.fdes {
		f := &l.fdes[k]
		if f.Start == f.End {
			continue
		}
		if reach != nil && f.Start < reach.End {
			l.add(Finding{
				Kind: Overlap, Address: f.Start,
				Says:  fmt.Sprintf("FDEs for %#x..%#x and %#x..%#x", reach.Start, reach.End, f.Start, f.End),
				Truth: "code belongs to one FDE",
			})
		}
		if reach == nil || f.End > reach.End {
			reach = f
		}
	}
}

// places reports FDEs of what is no code.
func (l *linter) places() {
	for k := range l.fdes {
		f := &l.fdes[k]
		if f.Start < f.End && (!l.executable(f.Start) || !l.executable(f.End-1)) {
			l.add(Finding{
				Kind: OutsideCode, Address: f.Start,
				Says:  fmt.Sprintf("an FDE for %#x..%#x", f.Start, f.End),
				Truth: "that is not all code",
			})
		}
	}
}

// executable says whether an address is that of code: in a section of code, or without sections in a segment that can
// be executed.
func (l *linter) executable(addr uint64) bool {
	if len(l.im.Sections()) > 0 {
		s := l.im.SectionAt(addr)
		return s != nil && s.Executable()
	}
	for _, s := range l.im.Segments() {
		if s.Type == object.SegmentLoad && s.Perm&object.PermX != 0 && addr >= s.Addr && addr-s.Addr < s.MemSize {
			return true
		}
	}
	return false
}

// linkage reports PLTs that an FDE describes in part only: linkers describe all of one, or nothing.
func (l *linter) linkage() {
	for k := range l.plts {
		r := &l.plts[k]
		f, ok := l.table.Find(r.Start)
		if !ok || f.End >= r.End {
			continue
		}
		if _, ok := l.table.Find(f.End); !ok {
			l.add(Finding{
				Kind: NoCFI, Address: f.End, Says: fmt.Sprintf("an FDE for %#x..%#x", f.Start, f.End),
				Truth: fmt.Sprintf("%s reaches up to %#x", r.Name, r.End), Directive: ".cfi_startproc",
			})
		}
	}
}

// described says whether an FDE or compact unwind information describes an address.
func (l *linter) described(addr uint64) bool {
	if _, ok := l.table.Find(addr); ok {
		return true
	}
	if l.compact == nil {
		return false
	}
	_, ok, err := l.compact.Find(addr)
	return ok && err == nil
}

// uncovered reports functions without an FDE, those that lie in one another once.
func (l *linter) uncovered() {
	var done uint64
	for k := range l.symbols {
		s := &l.symbols[k]
		if s.Size == 0 || s.Addr < done || !l.executable(s.Addr) {
			continue
		}
		if l.described(s.Addr) {
			continue
		}
		done = s.Addr + s.Size
		l.add(Finding{
			Kind: NoCFI, Function: s.Name, Address: s.Addr, Says: "nothing",
			Truth:     fmt.Sprintf("a function of %d bytes", s.Size),
			Directive: ".cfi_startproc",
		})
	}
}
