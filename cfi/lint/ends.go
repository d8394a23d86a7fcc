package lint

import (
	"fmt"

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
