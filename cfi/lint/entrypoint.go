package lint

import (
	"fmt"

	"github.com/callreel/callreel/cfi"
)

// entryPoint checks the row of the program's entry point. No call enters it, but it can say no more than that the frame is at the
// stack pointer (System V AMD64 ABI §3.4.1), on x86-64 with or without the word for a return address, and that nothing is saved yet.
func (l *linter) entryPoint() {
	p := processorOf(l.im.Arch)
	if p == nil || l.im.Entry() == 0 {
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
	sp := p.name(p.sp)
	if !p.bySP(&r.CFA) || r.CFA.Offset != p.entryCFA && r.CFA.Offset != 0 {
		l.add(Finding{
			Kind: WrongCFA, Address: f.Start, Says: cfaText(&r.CFA, l.names),
			Truth: fmt.Sprintf("cfa=%s%+d", sp, p.entryCFA), Directive: fmt.Sprintf(".cfi_def_cfa %s, %d", sp, p.entryCFA),
		})
		return
	}
	for k := range r.Regs {
		rule := &r.Regs[k]
		if rule.Kind == cfi.Undefined || rule.Kind == cfi.SameValue || rule.Reg == p.dwarf(p.sp) && rule.Kind == cfi.ValOffset && rule.Offset == 0 {
			continue
		}
		name := l.names(rule.Reg)
		l.add(Finding{
			Kind: WrongRegister, Address: f.Start, Says: name + "=" + rule.Format(l.names),
			Truth: "nothing is saved before the first instruction", Directive: ".cfi_same_value " + name,
		})
	}
}
