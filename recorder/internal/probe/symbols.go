package probe

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
)

// symbol is a name of code.
type symbol struct {
	name    string
	addr    uint64
	size    uint64 // 0 when unknown
	local   bool
	dynamic bool // other images link to it
}

// symbols is a list of them in blocks, since it is not known how long it will be.
type symbols struct {
	blocks [][]symbol
	n      int
}

const symbolBlock = 4096

func (l *symbols) add(s symbol) {
	if l.n%symbolBlock == 0 {
		l.blocks = append(l.blocks, make([]symbol, symbolBlock))
	}
	*l.at(uint32(l.n)) = s
	l.n++
}

func (l *symbols) at(i uint32) *symbol { return &l.blocks[i/symbolBlock][i%symbolBlock] }

// findSymbols finds the symbols of functions, and sorts them by address and then the best name first.
func (im *Image) findSymbols() error {
	err := im.Object.VisitSymbols(func(s *object.Symbol) bool {
		if !s.Defined() || s.Kind == object.TLS || im.textAt(s.Addr) == nil {
			return true
		}
		if s.Kind == object.Object {
			im.data = append(im.data, s.Addr)
			return true
		}
		im.markTarget(s.Addr) // a label without a type may be an entry, too
		if s.IsFunc() && s.Name != "" && !im.isLinkage(s.Addr) {
			im.symbols.add(symbol{s.Name, s.Addr, s.Size, s.Binding == object.Local, s.Dynamic})
		}
		return true
	})
	if err != nil {
		return err
	}
	im.nameAddresses()
	return nil
}

// nameAddresses makes the lists of names.
func (im *Image) nameAddresses() {
	type placed struct {
		addr  uint64
		index uint32
	}
	all := make([]placed, im.symbols.n)
	for i := range all {
		all[i] = placed{im.symbols.at(uint32(i)).addr, uint32(i)}
	}
	slices.SortFunc(all, func(a, b placed) int {
		if a.addr != b.addr {
			return cmp.Compare(a.addr, b.addr)
		}
		return cmp.Compare(a.index, b.index)
	})
	im.names = make([]uint32, 0, len(all))
	for from, to := 0, 0; from < len(all); from = to {
		first := len(im.names)
		for ; to < len(all) && all[to].addr == all[from].addr; to++ {
			im.names = append(im.names, all[to].index)
		}
		im.names = im.names[:first+len(im.sortNames(im.names[first:]))]
	}
}

// sortNames sorts the symbols of one address, the best name first. Of those of one name, from several tables, the first is
// kept and told what the others know better.
func (im *Image) sortNames(list []uint32) []uint32 {
	if len(list) == 1 {
		return list
	}
	slices.SortFunc(list, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(im.symbols.at(a).name, im.symbols.at(b).name), cmp.Compare(a, b))
	})
	once := list[:1]
	for _, index := range list[1:] {
		s, first := im.symbols.at(index), im.symbols.at(once[len(once)-1])
		if s.name != first.name {
			once = append(once, index)
			continue
		}
		first.dynamic = first.dynamic || s.dynamic
		first.size = cmp.Or(first.size, s.size)
	}
	slices.SortFunc(once, func(a, b uint32) int { return betterName(im.symbols.at(a), im.symbols.at(b)) })
	return once
}

// betterName orders the names of one address: those that other images link to first, then global ones, then those with
// fewer leading underscores, then the shorter.
func betterName(a, b *symbol) int {
	rank := func(s *symbol) int {
		r := strings.IndexFunc(s.name, func(r rune) bool { return r != '_' }) * 4
		if s.local {
			r += 2
		}
		if !s.dynamic {
			r++
		}
		return r
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
}

// name is what the chunk is called, image+0x… when it has no symbol.
func (im *Image) name(c *chunk) string {
	if c.names.n > 0 {
		return im.symbols.at(im.names[c.names.from]).name
	}
	return fmt.Sprintf("%s+%#x", im.Module, c.start)
}

// allNames are the names that symbols give the chunk, the best first.
func (im *Image) allNames(c *chunk) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, s := range im.names[c.names.from:][:c.names.n] {
			if !yield(im.symbols.at(s).name) {
				return
			}
		}
	}
}
