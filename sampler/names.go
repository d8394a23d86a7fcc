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

// nameTable names the functions of one image by its symbol tables.
type nameTable struct {
	once    sync.Once
	symbols []object.Symbol // sorted by address
	ends    []uint64        // greatest end of a symbol up to each
}

// TableNames is a Symbolizer over the symbol tables of the images' own files.
type TableNames struct{ call [1]Call }

// Calls implements Symbolizer.
func (n *TableNames) Calls(im *Image, link uint64) []Call {
	file := im.File()
	if file == nil {
		return nil
	}
	name := im.names.find(file, link)
	if name == "" {
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

// find returns the name of the function that contains an address, "" when none does.
func (t *nameTable) find(file *object.Image, link uint64) string {
	t.once.Do(func() {
		t.symbols, _ = file.FunctionSymbols() // what a damaged table has still counts
		t.ends = make([]uint64, len(t.symbols))
		end := uint64(0)
		for k := range t.symbols {
			end = max(end, t.symbols[k].Addr+t.symbols[k].Size)
			t.ends[k] = end
		}
	})
	k := sort.Search(len(t.symbols), func(k int) bool { return t.symbols[k].Addr > link }) - 1
	const maxNested = 64 // aliases, and local symbols inside of functions
	for tries := 0; k >= 0 && t.ends[k] > link && tries < maxNested; k, tries = k-1, tries+1 {
		if s := &t.symbols[k]; link-s.Addr < s.Size {
			return t.best(s.Addr, link)
		}
	}
	return ""
}

// best chooses among the names that start at an address and contain another: plain
// names go before those with the underscores of a library's inner workings, and what
// other images see before what only a file calls so.
func (t *nameTable) best(start, link uint64) string {
	k := sort.Search(len(t.symbols), func(k int) bool { return t.symbols[k].Addr >= start })
	var all []*object.Symbol
	for ; k < len(t.symbols) && t.symbols[k].Addr == start; k++ {
		if s := &t.symbols[k]; link-s.Addr < s.Size {
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
