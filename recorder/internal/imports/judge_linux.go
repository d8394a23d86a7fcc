package imports

import (
	"slices"
	"sort"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
)

// The rules are those of the System V gABI (chapter 5, Shared Object Dependencies) with versions as glibc has them: the images that were loaded
// with the program are searched in their order, then, for what was loaded later, the image and what it needs, breadth first. What was loaded
// with RTLD_GLOBAL or RTLD_DEEPBIND can't be told from outside; so a definition that such rules could have chosen isn't called rebound.

// judge finds out where a slot leads, and whether the linker would have put that there.
func (r *Process) judge(s *Slot) {
	if s.Verdict == Unreadable {
		return
	}
	list := r.definers(s)
	if len(list) > 0 {
		first := &list[0]
		s.Expected, s.Sure = first.im, first.sure && (len(list) == 1 || s.Image.startup && first.im.startup)
		if first.kind != object.IFunc {
			s.Target = first.addr + first.im.Slide + uint64(s.Addend)
		}
	}
	s.To = r.imageAt(s.Value)
	s.By = r.describe(s.To, s.Value)
	s.Verdict = r.verdict(s, list)
	if s.Verdict != Lazy && s.Verdict != Undefined && s.To != nil {
		s.Name, s.Off = s.To.nameOf(s.Value - s.To.Slide)
	}
	// Of several names of one address the one that was asked for.
	if s.To != nil && s.Off == 0 && slices.ContainsFunc(s.To.defs[s.Symbol.Name], func(d definition) bool { return d.addr+s.To.Slide == s.Value }) {
		s.Name = s.Symbol.Name
	}
}

// definer is a definition that a slot may be bound to.
type definer struct {
	definition
	im   *Image
	near bool // in what the image itself needs
	sure bool // certainly searched
}

// definers are the definitions of a slot's symbol, in the order in which they are searched as far as that is known.
func (r *Process) definers(s *Slot) (list []definer) {
	closure := r.closureOf(s.Image)
	add := func(im *Image, sure bool) {
		if slices.ContainsFunc(list, func(d definer) bool { return d.im == im }) {
			return
		}
		for _, d := range im.defs[s.Symbol.Name] {
			if !matches(&s.Symbol, &d) || d.kind == canonical && (s.Kind == object.SlotJump || im == s.Image) {
				continue
			}
			list = append(list, definer{d, im, slices.Contains(closure, im), sure})
		}
	}
	known := len(r.Images) > 0 && r.Images[0].startup
	if s.Image.listed {
		for _, im := range r.Images {
			if im.startup {
				add(im, known)
			}
		}
	}
	for _, im := range closure {
		add(im, known)
	}
	for _, im := range r.Images { // RTLD_GLOBAL
		add(im, false)
	}
	return list
}

// matches says whether a definition is one that a reference may be bound to, as far as its version goes: of the same name, or one without.
func matches(ref *object.Symbol, d *definition) bool {
	return ref.Version == "" || d.version == "" || ref.Version == d.version
}

func (r *Process) verdict(s *Slot, list []definer) Verdict {
	if s.Value == 0 {
		if len(list) == 0 || s.Symbol.Binding == object.Weak {
			return Undefined
		}
		return Unrelocated
	}
	if s.Kind == object.SlotJump && s.To == s.Image && s.Image.isPLT(s.Value-s.Image.Slide) {
		return Lazy
	}
	if s.Image.Slide != 0 && s.Value == fileWord(s.Image.Object, s.Offset) {
		return Unrelocated
	}
	for i := range list {
		d := &list[i]
		if !r.leadsTo(s, d) {
			continue
		}
		if d.near || !slices.ContainsFunc(list, func(o definer) bool { return o.near }) {
			if i == 0 || d.im == s.Image || !list[0].sure || !d.im.startup {
				return Bound
			}
			// An earlier one would have been found, unless its scope isn't that of the program.
			if s.Image.startup && list[0].im != d.im {
				return Rebound
			}
			return Bound
		}
		if i == 0 || !list[0].sure {
			return Interposed
		}
	}
	return Rebound
}

// leadsTo says whether a slot's value is what comes of a definition. A resolver may return any function of its image, or of the kernel's.
func (r *Process) leadsTo(s *Slot, d *definer) bool {
	if d.kind == object.IFunc {
		if m := process.FindMapping(r.maps, s.Value); m != nil && m.Special == "[vdso]" {
			return true
		}
		return s.To == d.im && s.Kind != object.SlotWord || s.To == d.im && s.Addend == 0
	}
	return s.Value == d.addr+d.im.Slide+uint64(s.Addend)
}

// isPLT says whether a link address is in the PLT. An image without sections doesn't say where that is: there it is all of its code that no
// symbol has.
func (im *Image) isPLT(addr uint64) bool {
	if len(im.plt) > 0 {
		return slices.ContainsFunc(im.plt, func(g object.Range) bool { return addr >= g.Start && addr < g.End })
	}
	name, _ := im.nameOf(addr)
	return name == "" && im.isCode(addr)
}

// isCode says whether a link address is in a segment of code.
func (im *Image) isCode(addr uint64) bool {
	return slices.ContainsFunc(im.Object.Segments(), func(s object.Segment) bool {
		return s.Type == object.SegmentLoad && s.Perm&object.PermX != 0 && addr >= s.Addr && addr-s.Addr < s.MemSize
	})
}

// nameOf is the symbol of a function at a link address, and how far behind its beginning that is.
func (im *Image) nameOf(addr uint64) (string, uint64) {
	if !im.named {
		im.named = true
		im.functions, _ = im.Object.FunctionSymbols() // those of the tables that can be read
	}
	i := sort.Search(len(im.functions), func(i int) bool { return im.functions[i].Addr > addr })
	if i == 0 {
		return "", 0
	}
	f := &im.functions[i-1]
	for i > 1 && im.functions[i-2].Addr == f.Addr && !f.Dynamic { // the name by which others know it
		i--
		f = &im.functions[i-1]
	}
	if addr-f.Addr >= max(f.Size, 1) {
		return "", 0
	}
	return f.Name, addr - f.Addr
}

// describe says what is at an address.
func (r *Process) describe(to *Image, addr uint64) string {
	if to != nil {
		return to.Module
	}
	m := process.FindMapping(r.maps, addr)
	switch {
	case addr == 0:
		return ""
	case m == nil:
		return "nothing that is mapped"
	case m.Special != "":
		return m.Special
	case m.IsRecorders():
		return "callreel"
	case m.Path != "":
		return m.Path
	}
	return "anonymous memory"
}
