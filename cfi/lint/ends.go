package lint

import (
	"fmt"
	"sort"

	"github.com/callreel/callreel/isa/amd64"
)

// boundaries reports FDEs that end within an instruction, or before one that control goes on to and that nothing describes. It
// goes by what calls reach.
func (k *checker) boundaries(f *function) []Finding {
	var list []Finding
	for at := range f.parts {
		p := &f.parts[at]
		if p.plt {
			continue
		}
		var n *node
		if last := f.lastOf(p); last >= 0 {
			n = &f.nodes[last]
		}
		if reach := k.reach(f, p, n); reach > p.end {
			list = append(list, Finding{
				Kind: SplitInsn, Address: p.start, Says: fmt.Sprintf("an FDE for %#x..%#x", p.start, p.end),
				Truth: fmt.Sprintf("an instruction reaches up to %#x", reach),
			})
		} else if n != nil && n.addr+uint64(n.inst.Len) == p.end && k.goesOn(n) {
			list = append(list, Finding{
				Kind: NoCFI, Address: p.end, Says: fmt.Sprintf("an FDE for %#x..%#x", p.start, p.end),
				Truth: "control goes on behind it", Directive: ".cfi_startproc",
			})
		} else if truth := k.rest(f, p); truth != "" {
			list = append(list, Finding{
				Kind: NoCFI, Address: p.end, Says: fmt.Sprintf("an FDE for %#x..%#x", p.start, p.end),
				Truth: truth, Directive: ".cfi_startproc",
			})
		}
	}
	return list
}

// reach returns where the last instruction of a part ends: one that control comes to, or padding behind the last node, which
// belongs to the FDE or not, but as a whole.
func (k *checker) reach(f *function, p *part, last *node) uint64 {
	for _, at := range f.broken {
		if at < p.start || at >= p.end {
			continue
		}
		if in, ok := k.inst(at); ok && at+uint64(in.Len) > p.end {
			return at + uint64(in.Len)
		}
	}
	if last == nil {
		return p.end
	}
	next := last.addr + uint64(last.inst.Len)
	for next < p.end {
		in, ok := k.inst(next)
		if !ok || !in.IsPadding() {
			break
		}
		next += uint64(in.Len)
	}
	return next
}

// symbolsEnd returns where the symbol ends that begins with an FDE or within it and reaches farthest; 0 for none.
func (l *linter) symbolsEnd(start, end uint64) (reach uint64) {
	k := sort.Search(len(l.symbols), func(k int) bool { return l.symbols[k].Addr >= start })
	for ; k < len(l.symbols) && l.symbols[k].Addr < end; k++ {
		if s := &l.symbols[k]; s.Size > 0 && s.Size < maxRest {
			reach = max(reach, s.Addr+s.Size)
		}
	}
	return reach
}

// follows says whether no FDE and no symbol begins between the end of an FDE and an address, that included: there it is the
// same function still.
func (l *linter) follows(end, to uint64) bool {
	k := sort.Search(len(l.symbols), func(k int) bool { return l.symbols[k].Addr >= end })
	n := sort.Search(len(l.fdes), func(k int) bool { return l.fdes[k].Start >= end })
	return (k == len(l.symbols) || l.symbols[k].Addr > to) && (n == len(l.fdes) || l.fdes[n].Start > to)
}

// maxRest is how far behind an FDE what a branch leads to still is the rest of its function.
const maxRest = 1 << 12

// rest says what shows that a part's function goes on behind its end, where nothing describes it: a branch that leads there, or
// a symbol that reaches there; "" where nothing does.
func (k *checker) rest(f *function, p *part) string {
	if k.described == nil || k.described(p.end) || k.symbolsEnd == nil {
		return ""
	}
	in, ok := k.inst(p.end)
	if !ok || in.IsPadding() || in.Kind == amd64.Breakpoint || in.Kind == amd64.Syscall {
		return "" // as in goesOn
	}
	if end := k.symbolsEnd(p.start, p.end); end > p.end {
		return fmt.Sprintf("its symbol reaches up to %#x", end)
	}
	for id := range f.nodes {
		n := &f.nodes[id]
		to, ok := n.inst.Target(n.addr)
		if !ok || n.inst.Kind == amd64.Call || &f.parts[n.part] != p || to < p.end || to-p.end >= maxRest || !k.follows(p.end, to) {
			continue
		}
		return fmt.Sprintf("the branch at %#x leads to %#x", n.addr, to)
	}
	return ""
}

// goesOn says whether control goes on from the last instruction of an FDE to code that nothing describes.
func (k *checker) goesOn(n *node) bool {
	end := n.addr + uint64(n.inst.Len)
	if n.inst.Ends() || n.calls() || n.inst.Kind == amd64.Breakpoint || k.described == nil || k.described(end) {
		return false
	}
	in, ok := k.inst(end)
	// The system call that makes a thread is left out on purpose: there is no caller behind it in the child.
	return ok && !in.IsPadding() && in.Kind != amd64.Breakpoint && in.Kind != amd64.Syscall
}

// lastOf returns the last node of a part that was decoded, or -1.
func (f *function) lastOf(p *part) int32 {
	for off := len(p.nodes) - 1; off >= 0; off-- {
		if id := p.nodes[off]; id != 0 {
			return id - 1
		}
	}
	return -1
}

// inst decodes an instruction wherever it ends.
func (k *checker) inst(addr uint64) (amd64.Inst, bool) {
	var in amd64.Inst
	for n := uint64(amd64.MaxLen); n > 0; n-- {
		if code, err := k.read(addr, n); err == nil {
			return in, amd64.DecodeTo(&in, code) == nil
		}
	}
	return in, false
}
