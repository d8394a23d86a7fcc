package lint

import (
	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/object"
)

// entryPoint checks the row of the program's entry point. No call enters it, but it can say no more than that the frame is at the
// stack pointer (System V AMD64 ABI §3.4.1), with or without the word for a return address, and that nothing is saved yet.
func (l *linter) entryPoint() {
	if l.im.Arch != object.AMD64 || l.im.Entry() == 0 {
		return
	}
	f, ok := l.table.Find(l.im.Entry())
	if !ok || f.Start != l.im.Entry() || f.CIE.SignalFrame {
		return
	}
	r := &l.first[l.indexOf(f)]
	if r.Start != f.Start || r.End == r.Start || r.RA().Kind != cfi.Undefined {
		return // compared as other functions are
	}
	if r.CFA.Kind != cfi.RegOffset || r.CFA.Reg != dwarfRSP || r.CFA.Offset != 8 && r.CFA.Offset != 0 {
		l.add(Finding{Kind: WrongCFA, Address: f.Start, Says: cfaText(&r.CFA, l.names), Truth: "cfa=rsp+8", Directive: ".cfi_def_cfa rsp, 8"})
		return
	}
	for k := range r.Regs {
		rule := &r.Regs[k]
		if rule.Kind == cfi.Undefined || rule.Kind == cfi.SameValue || rule.Reg == dwarfRSP && rule.Kind == cfi.ValOffset && rule.Offset == 0 {
			continue
		}
		name := l.names(rule.Reg)
		l.add(Finding{
			Kind: WrongRegister, Address: f.Start, Says: name + "=" + rule.Format(l.names),
			Truth: "nothing is saved before the first instruction", Directive: ".cfi_same_value " + name,
		})
	}
}
