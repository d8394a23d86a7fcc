package symbolize

import (
	"fmt"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols"
)

// module is an open Module and what it has answered.
type module struct {
	Module
	err     string // why there are no symbols, "" when there are
	answers map[uint64]answer
	kept    int // bytes of answers
}

// answer is what a link address has turned out to be.
type answer struct {
	calls  []Call
	reason string
}

// size is about what an answer takes, in bytes.
func (a *answer) size() int {
	n := 128 + len(a.reason)
	for k := range a.calls {
		n += 96 + len(a.calls[k].Function) + len(a.calls[k].File)
	}
	return n
}

// maxKept bounds the answers that are kept of one image, in bytes. Stacks repeat their outer
// frames, and demangling costs ten times as much as looking up; the stacks of all threads of
// a large program have some ten thousand addresses.
const maxKept = 32 << 20

// link is the link address of what stands at an offset from an image's load address.
func (m *module) link(im *Image, offset uint64) (link uint64, reason string) {
	if im.Offset == 0 {
		return m.Base + offset, ""
	}
	if m.Segments == nil {
		return 0, fmt.Sprintf("%s: loaded from offset %#x, and its file is not here to say which address that is", im.Name(), im.Offset)
	}
	// Loaders map whole pages, so the page of a segment's start is mapped with it, and may
	// be the last page of the segment before.
	for _, starts := range [...]bool{true, false} {
		for _, r := range m.Segments {
			start := r.Off &^ (object.MinPageSize - 1)
			if im.Offset == start || !starts && im.Offset > start && im.Offset-r.Off < r.Size {
				return r.Addr + (im.Offset - r.Off) + offset, ""
			}
		}
	}
	return 0, fmt.Sprintf("%s: no segment of its file is loaded from offset %#x", im.Name(), im.Offset)
}

// place is the link address of a place in the file.
func (m *module) place(p *Place) (link uint64, reason string) {
	if p.Symbol == "" {
		return p.Offset, ""
	}
	if m.Symbol == nil {
		return 0, fmt.Sprintf("%s: its file is not here to say where %s is", baseName(p.Path), p.Symbol)
	}
	start, ok := m.Symbol(p.Symbol)
	if !ok {
		return 0, fmt.Sprintf("%s has no function %s, or several", baseName(p.Path), p.Symbol)
	}
	return start + p.Offset, ""
}

// name fills n with what is at a link address, or behind the call before it.
func (m *module) name(s *Symbolizer, link uint64, exact bool, n *Named) {
	if m.Thumb {
		link &^= 1
	}
	if !exact {
		link--
	}
	a, ok := m.answers[link]
	if !ok {
		a = m.answer(s, link)
		if m.kept += a.size(); m.kept > maxKept || m.answers == nil {
			m.answers, m.kept = map[uint64]answer{}, a.size()
		}
		m.answers[link] = a
	}
	n.Calls, n.Reason = a.calls, a.reason
}

func (m *module) answer(s *Symbolizer, link uint64) answer {
	var why symbols.Reason
	s.frames, why = m.Map.Lookup(link, s.frames[:0])
	if len(s.frames) == 0 {
		if e, ok := m.Map.(interface{ Explain(symbols.Reason) string }); ok {
			return answer{reason: e.Explain(why)}
		}
		return answer{reason: why.String()}
	}
	calls := make([]Call, len(s.frames))
	for k := range s.frames {
		f := &s.frames[k]
		calls[k] = Call{Function: f.Function(), Linkage: f.Linkage, File: f.File(), Line: f.Line, Inlined: f.Inlined}
	}
	return answer{calls: calls}
}

// trampoline says whether a link address is in the code that signal handlers return to.
// It is looked up as it is: a handler's return address is the trampoline's first byte.
func (m *module) trampoline(s *Symbolizer, link uint64) bool {
	if m.Signals != nil && m.Signals(link) {
		return true
	}
	s.frames, _ = m.Map.Lookup(link, s.frames[:0])
	if len(s.frames) != 1 {
		return false
	}
	switch s.frames[0].Linkage {
	case "__restore_rt", "__restore", // glibc and musl
		"__kernel_rt_sigreturn", "__kernel_sigreturn", // Linux' vdso
		"_sigtramp", "__sigtramp", "_platform_sigtramp", // Darwin
		"__default_sa_restorer", "__default_rt_sa_restorer", // ARM
		"runtime.sigreturn__sigaction", "runtime.sigreturn": // Go
		return true
	}
	return false
}
