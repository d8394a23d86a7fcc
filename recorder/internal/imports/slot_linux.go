package imports

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// Slot is a slot of an image as it stands in the process.
type Slot struct {
	object.Slot
	Image *Image // whose it is
	Addr  uint64 // of the slot in the process
	Value uint64 // what was in it
	Verdict
	To *Image // that the value leads into, nil if it is none
	// Name is the symbol that it leads to, Off how far behind its beginning; "" where no symbol is known.
	Name string
	Off  uint64
	// By is what it leads into, in words: an image's module, or what is mapped there.
	By string
	// Expected is where the linker's rules put it, nil if nothing defines the symbol, and Target the address there, 0 where only a resolver
	// knows (IFUNC). Sure says that the rules leave no other.
	Expected *Image
	Target   uint64
	Sure     bool
}

// Verdict says what a slot's value is by the dynamic linker's rules.
type Verdict uint8

// The verdicts.
const (
	Bound       Verdict = iota // to what the symbol's definition is
	Interposed                 // to a definition that comes before that of the libraries which the image needs: a preloaded library's, or the program's
	Lazy                       // not yet: it leads into the image's own PLT, which asks the linker on the first call
	Undefined                  // 0: a weak symbol that nothing defines
	Unrelocated                // it has what the file has: the loader hasn't come to it, or nothing can be told of it
	Rebound                    // somewhere the linker would not have led it
	Unreadable
)

// String returns the verdict in a word.
func (v Verdict) String() string {
	return [...]string{"bound", "interposed", "lazy", "undefined", "unrelocated", "rebound", "unreadable"}[v]
}

// Names are what globs may match of a slot: its symbol's name, and that behind the name of a library that it leads to, or is to lead to.
func (s *Slot) Names() []string {
	name := s.Symbol.Name
	names := []string{name}
	for _, im := range []*Image{s.To, s.Expected} {
		if im == nil || im == s.Image && s.Verdict == Lazy {
			continue
		}
		names = append(names, im.Module+":"+name)
		if so := im.Object.SoName(); so != "" && so != im.Module {
			names = append(names, so+":"+name)
		}
	}
	return names
}

// Library is the name of the library that the function is of: the one that the slot leads to, or else is to lead to; "" if there is none.
func (s *Slot) Library() string {
	switch {
	case s.Verdict != Lazy && s.To != nil:
		return s.To.Module
	case s.Expected != nil:
		return s.Expected.Module
	}
	return ""
}

// IsFunction says whether a slot is for a function: its symbol says so, or a definition of it; where neither does, that it leads to code.
func (r *Process) IsFunction(s *Slot) bool {
	switch s.Symbol.Kind {
	case object.Func, object.IFunc:
		return true
	case object.Object, object.Common, object.TLS:
		return false
	}
	if s.Kind == object.SlotJump {
		return true
	}
	if s.Expected != nil {
		for _, d := range s.Expected.defs[s.Symbol.Name] {
			if matches(&s.Symbol, &d) && d.kind != object.NoType {
				return d.kind == object.Func || d.kind == object.IFunc || d.kind == canonical
			}
		}
	}
	m := process.FindMapping(r.maps, s.Value)
	return s.Value == 0 || m != nil && m.Perm&process.PermExec != 0
}

// maxSlots bounds how many slots of one image are looked at. libxul has some 5,000 for functions of others, and 400,000 words.
const maxSlots = 1 << 21

// Slots reads the slots of an image that wanted takes, in the order of their addresses. The error is about what can't be read of the file, beside
// what can.
func (r *Process) Slots(im *Image, wanted func(*object.Slot) bool) ([]Slot, error) {
	const (
		cost = 384 // bytes each
		most = 1024
	)
	var list []Slot
	var full error
	err := im.Object.VisitSlots(func(s *object.Slot) bool {
		if s.Symbol.Kind == object.TLS || !wanted(s) {
			return true
		}
		if len(list)%most == 0 {
			full = im.Object.Take(cost*most, "a list of so many slots")
		}
		if full == nil {
			list = append(list, Slot{Slot: *s, Image: im, Addr: s.Offset + im.Slide})
		}
		return full == nil && len(list) < maxSlots
	})
	err = errors.Join(err, full)
	slices.SortStableFunc(list, func(a, b Slot) int { return cmp.Compare(a.Addr, b.Addr) })
	// Two relocations of one place: the loader applies both, the last one counts.
	kept := list[:0]
	for _, s := range list {
		if n := len(kept); n > 0 && kept[n-1].Addr == s.Addr {
			kept[n-1] = s
			continue
		}
		kept = append(kept, s)
	}
	list = kept
	r.readValues(list)
	for i := range list {
		r.judge(&list[i])
	}
	return list, err
}

// Unfilled is slots of an image that the loader may not have come to. It doesn't need the image's file.
type Unfilled struct {
	addrs, words []uint64 // where they are, and what the file has there
	slid         bool
}

// NewUnfilled returns those of an image that was loaded with that slide.
func NewUnfilled(o *object.Image, slots []plan.Slot, slide uint64) *Unfilled {
	const most = 4096
	u := &Unfilled{slid: slide != 0}
	for i := range slots[:min(len(slots), most)] {
		u.addrs = append(u.addrs, slots[i].Addr+slide)
		u.words = append(u.words, fileWord(o, slots[i].Addr))
	}
	return u
}

// Filled says whether the loader has filled them in. One that isn't bound yet has an address, too.
func (u *Unfilled) Filled(p *process.Process) bool {
	some := false
	for i, addr := range u.addrs {
		var b [8]byte
		if _, err := p.ReadAt(b[:], addr); err != nil {
			return true // it has gone
		}
		v := binary.LittleEndian.Uint64(b[:])
		if v != 0 && u.slid && v == u.words[i] {
			return false
		}
		some = some || v != 0
	}
	return some
}

// fileWord is what the file has in a slot, 0 where it has nothing.
func fileWord(o *object.Image, at uint64) uint64 {
	b, err := o.ReadAddr(at, 8)
	if err != nil || len(b) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// readValues reads what is in the slots, those near each other at once.
func (r *Process) readValues(list []Slot) {
	const near, most = 1 << 10, 64 << 10
	buf := make([]byte, most)
	for i := 0; i < len(list); {
		k := i + 1
		for k < len(list) && list[k].Addr-list[k-1].Addr <= near && list[k].Addr-list[i].Addr <= most-8 {
			k++
		}
		part := buf[:list[k-1].Addr-list[i].Addr+8]
		if _, err := r.p.ReadAt(part, list[i].Addr); err == nil {
			for n := i; n < k; n++ {
				list[n].Value = binary.LittleEndian.Uint64(part[list[n].Addr-list[i].Addr:])
			}
		} else {
			for n := i; n < k; n++ {
				r.readValue(&list[n])
			}
		}
		i = k
	}
}

func (r *Process) readValue(s *Slot) {
	var b [8]byte
	if _, err := r.p.ReadAt(b[:], s.Addr); err != nil {
		s.Verdict = Unreadable
		return
	}
	s.Value = binary.LittleEndian.Uint64(b[:])
}
