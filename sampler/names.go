package sampler

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/object"
)

// A Symbolizer names code.
type Symbolizer interface {
	// Calls returns what is at a link address of an image, innermost first: calls
	// that were inlined, and last the function. None when it knows of none. The
	// slice is the caller's until the next call.
	Calls(im *Image, link uint64) []Call
}

// A Call is one function at an address.
type Call struct {
	Function string // demangled
	Linkage  string
	File     string // "" when not known
	Line     uint32 // 0 when not known
	Inlined  bool   // into the next Call
}

// nameTable names the functions of one image by its symbol tables. Symbols without a
// size, as hand-written assembly has them, are functions or places inside of one: they
// count where no other holds the address.
type nameTable struct {
	once    sync.Once
	sized   []object.Symbol // sorted by address
	ends    []uint64        // greatest end of a sized symbol up to each
	unsized []object.Symbol // sorted by address; the size is what they can have at most
}

// TableNames is a Symbolizer over the symbol tables of the images' own files, and the tables of functions in Go programs.
type TableNames struct{ call [1]Call }

// Calls implements Symbolizer.
func (n *TableNames) Calls(im *Image, link uint64) []Call {
	file := im.File()
	if file == nil {
		return nil
	}
	name, _ := im.names.find(file, link)
	if name == "" {
		if call, ok := im.gos.find(file, link); ok {
			n.call[0] = call
			return n.call[:]
		}
		if name = im.stubs.find(file, link); name == "" {
			return nil
		}
		// The name alone can be read by a demangler.
		n.call[0] = Call{Function: demangle.Name(strings.TrimSuffix(name, "@plt")) + "@plt", Linkage: name}
		return n.call[:]
	}
	n.call[0] = Call{Function: demangle.Name(name), Linkage: name}
	return n.call[:]
}

// only returns the name of the function that begins at an address, "" when it has several
// or none.
func (t *nameTable) only(file *object.Image, start uint64) string {
	t.load(file)
	k := from(t.sized, start)
	if k == len(t.sized) || t.sized[k].Addr != start || k+1 < len(t.sized) && t.sized[k+1].Addr == start {
		return ""
	}
	return t.sized[k].Name
}

func (t *nameTable) load(file *object.Image) {
	t.once.Do(func() {
		if file.Format == object.ELF && file.Type != object.Relocatable {
			t.loadELF(file)
		} else {
			t.sized, _ = file.FunctionSymbols() // what a damaged table has still counts
		}
		t.ends = make([]uint64, len(t.sized))
		end := uint64(0)
		for k := range t.sized {
			end = max(end, t.sized[k].Addr+t.sized[k].Size)
			t.ends[k] = end
		}
	})
}

// loadELF takes the symbols of functions, and those without a type that stand in code.
func (t *nameTable) loadELF(file *object.Image) {
	sections := file.Sections()
	all, _ := file.Symbols() // what a damaged table has still counts
	for k := range all {
		s := &all[k]
		in := uint64(s.Section) < uint64(len(sections)) && sections[s.Section].Executable()
		switch {
		case s.IsFunc() && s.Size > 0:
			t.sized = append(t.sized, *s)
		case in && (s.IsFunc() || s.Kind == object.NoType && !strings.HasPrefix(s.Name, "$") && !strings.HasPrefix(s.Name, ".L")):
			t.unsized = append(t.unsized, *s)
		}
	}
	byAddr := func(a, b object.Symbol) int { return cmp.Compare(a.Addr, b.Addr) }
	slices.SortStableFunc(t.sized, byAddr)
	slices.SortStableFunc(t.unsized, byAddr)
	for k := len(t.unsized) - 1; k >= 0; k-- {
		s := &t.unsized[k]
		section := &sections[s.Section]
		limit := section.Addr + section.Size
		if n := from(t.unsized, s.Addr+1); n < len(t.unsized) {
			limit = min(limit, t.unsized[n].Addr)
		}
		if n := from(t.sized, s.Addr+1); n < len(t.sized) {
			limit = min(limit, t.sized[n].Addr)
		}
		s.Size = max(limit, s.Addr) - s.Addr
	}
}

// from returns the index of the first symbol at or behind an address.
func from(list []object.Symbol, addr uint64) int {
	return sort.Search(len(list), func(k int) bool { return list[k].Addr >= addr })
}

// find returns the name of the function that contains an address and where it begins, ""
// when none does.
func (t *nameTable) find(file *object.Image, link uint64) (name string, start uint64) {
	t.load(file)
	k := from(t.sized, link+1) - 1
	const maxNested = 64 // aliases, and local symbols inside of functions
	for tries := 0; k >= 0 && t.ends[k] > link && tries < maxNested; k, tries = k-1, tries+1 {
		if s := &t.sized[k]; link-s.Addr < s.Size {
			return best(t.sized, s.Addr, link), s.Addr
		}
	}
	if k = from(t.unsized, link+1) - 1; k >= 0 && link-t.unsized[k].Addr < t.unsized[k].Size {
		return best(t.unsized, t.unsized[k].Addr, link), t.unsized[k].Addr
	}
	return "", 0
}

// best chooses among the names that start at an address and contain another: plain
// names go before those with the underscores of a library's inner workings, and what
// other images see before what only a file calls so.
func best(list []object.Symbol, start, link uint64) string {
	var all []*object.Symbol
	for k := from(list, start); k < len(list) && list[k].Addr == start; k++ {
		if s := &list[k]; link-s.Addr < s.Size {
			all = append(all, s)
		}
	}
	rank := func(s *object.Symbol) int {
		switch s.Binding {
		case object.Global, object.Unique:
			return 0
		case object.Weak:
			return 1
		}
		return 2
	}
	underscores := func(s *object.Symbol) int { return len(s.Name) - len(strings.TrimLeft(s.Name, "_")) }
	return slices.MinFunc(all, func(a, b *object.Symbol) int {
		return cmp.Or(cmp.Compare(underscores(a), underscores(b)), cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	}).Name
}
