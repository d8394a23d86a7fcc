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
	// be the last page of the segment before. How large they were isn't said.
	for page := uint64(object.MinPageSize); page <= object.MaxPageSize; page *= 2 {
		for _, r := range m.Segments {
			if im.Offset == r.Off&^(page-1) {
				return r.Addr + (im.Offset - r.Off) + offset, ""
			}
		}
	}
	for _, r := range m.Segments {
		if im.Offset > r.Off&^(object.MinPageSize-1) && im.Offset-r.Off < r.Size {
			return r.Addr + (im.Offset - r.Off) + offset, ""
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
	if s.raw && m.Texts != nil {
		var why symbols.Reason
		if s.frames, why = m.Map.Lookup(link, s.frames[:0]); len(s.frames) == 0 {
			n.Reason = reasonOf(m.Map, why)
		}
		n.found, n.texts = s.frames, m.Texts
		return
	}
	a, ok := m.answers[link]
	if !ok {
		a = ask(m.Map, link, &s.frames)
		if m.kept += a.size(); m.kept > maxKept || m.answers == nil {
			m.answers, m.kept = map[uint64]answer{}, a.size()
		}
		m.answers[link] = a
	}
	n.Calls, n.Reason = a.calls, a.reason
}

// callMap is a Map that finds a call by its return address, as *symbols.Map does.
type callMap interface {
	LookupCall(ret uint64, frames []symbols.Frame) (found []symbols.Frame, why symbols.Reason, same bool)
}

// nameCall is name for most return addresses: those in the middle of functions that are no trampolines. It says whether it was one.
func (m *module) nameCall(s *Symbolizer, link uint64, n *Named) bool {
	calls, ok := m.Map.(callMap)
	if !ok || !s.raw || m.Texts == nil || m.Thumb || m.Signals != nil {
		return false
	}
	var same bool
	s.frames, _, same = calls.LookupCall(link, s.frames[:0])
	if !same || len(s.frames) == 0 || isTrampoline(s.frames[len(s.frames)-1].Linkage) {
		return false
	}
	n.found, n.texts = s.frames, m.Texts
	return true
}

// trampoline says whether a link address is in the code that signal handlers return to.
// It is looked up as it is: a handler's return address is the trampoline's first byte.
func (m *module) trampoline(s *Symbolizer, link uint64) bool {
	if m.Signals != nil && m.Signals(link) {
		return true
	}
	// Most addresses need no more than the function around them.
	if n, ok := m.Map.(interface{ FunctionAt(uint64) string }); ok && !isTrampoline(n.FunctionAt(link)) {
		return false
	}
	s.frames, _ = m.Map.Lookup(link, s.frames[:0])
	return len(s.frames) == 1 && isTrampoline(s.frames[0].Linkage)
}

// isTrampoline knows the names of the code that signal handlers return to.
func isTrampoline(linkage string) bool {
	switch linkage {
	case "__restore_rt", "__restore", // glibc and musl
		"__kernel_rt_sigreturn", "__kernel_sigreturn", // Linux' vdso
		"_sigtramp", "__sigtramp", "_platform_sigtramp", // Darwin
		"__default_sa_restorer", "__default_rt_sa_restorer", // ARM
		"runtime.sigreturn__sigaction", "runtime.sigreturn": // Go
		return true
	}
	return false
}
