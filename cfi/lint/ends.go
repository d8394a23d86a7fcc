package lint

import (
	"fmt"
	"sort"
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
		} else if n != nil && n.end() == p.end && k.goesOn(f.p, n) {
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
		if in, ok := k.inst(f.p, at); ok && at+uint64(in.size) > p.end {
			return at + uint64(in.size)
		}
	}
	if last == nil {
		return p.end
	}
	next := last.end()
	for next < p.end {
		in, ok := k.inst(f.p, next)
		if !ok || !in.padding {
			break
		}
		next += uint64(in.size)
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
	in, ok := k.inst(f.p, p.end)
	if !ok || in.padding || in.way == breakpoint || in.way == syscall {
		return "" // as in goesOn
	}
	if end := k.symbolsEnd(p.start, p.end); end > p.end {
		return fmt.Sprintf("its symbol reaches up to %#x", end)
	}
	for id := range f.nodes {
		n := &f.nodes[id]
		to, ok := n.inst.leadsTo()
		if !ok || &f.parts[n.part] != p || to < p.end || to-p.end >= maxRest || !k.follows(p.end, to) {
			continue
		}
		return fmt.Sprintf("the branch at %#x leads to %#x", n.addr, to)
	}
	return ""
}

// goesOn says whether control goes on from the last instruction of an FDE to code that nothing describes.
func (k *checker) goesOn(p *processor, n *node) bool {
	end := n.end()
	if n.inst.ends || n.inst.calls() || n.inst.way == breakpoint || k.described == nil || k.described(end) {
		return false
	}
	in, ok := k.inst(p, end)
	// The system call that makes a thread is left out on purpose: there is no caller behind it in the child.
	return ok && !in.padding && in.way != breakpoint && in.way != syscall
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
func (k *checker) inst(p *processor, addr uint64) (in inst, ok bool) {
	for n := p.maxLen; n >= p.minLen; n-- {
		if code, err := k.read(addr, n); err == nil {
			ok = p.decode(&in, code, addr)
			return in, ok
		}
	}
	return in, false
}
