package plan

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// symbol is a name of code.
type symbol struct {
	name    string
	addr    uint64
	size    uint64 // 0 when unknown
	local   bool
	dynamic bool // other images link to it
	hook    Hook
	cold    bool // the name says that it is a part
	thunk   bool // the name says that it is one, see thunkAt
	waits   bool // it is one of cancellationPoints
}

// symbols is a list of them in blocks, since it is not known how long it will be. Block i has 2^i times as many as the first.
type symbols struct {
	blocks [][]symbol
	n      int
}

const symbolBlock = 1 << 12

func (l *symbols) add(s symbol) {
	if l.n == symbolBlock<<len(l.blocks)-symbolBlock {
		l.blocks = append(l.blocks, hugepage.Make[symbol](symbolBlock<<len(l.blocks)))
	}
	*l.at(l.n) = s
	l.n++
}

func (l *symbols) at(i int) *symbol {
	i += symbolBlock
	block := bits.Len(uint(i)/symbolBlock) - 1
	return &l.blocks[block][i-symbolBlock<<block]
}

// findSymbols finds the symbols of functions.
func (im *Image) findSymbols() (*symbols, error) {
	found := &symbols{}
	var over error
	functions, data := 0, 0 // that there is space for
	err := im.Object.VisitSymbols(func(s *object.Symbol) bool {
		if found.n == functions || len(im.data) == data {
			if over = im.Object.Take(planTake*(planCost+dataCost), "a plan of so many functions"); over != nil {
				return false
			}
			functions, data = found.n+planTake, len(im.data)+planTake
		}
		if !s.Defined() || s.Kind == object.TLS || im.textAt(s.Addr) == nil {
			return true
		}
		if s.Kind == object.Object {
			im.data = append(im.data, s.Addr)
			return true
		}
		if s.IsFunc() && s.Name != "" && !im.isLinkage(s.Addr) { // which is marked in its order, see chunksOfPart
			_, cold := coldBase(s.Name)
			found.add(symbol{name: s.Name, addr: s.Addr, size: s.Size, local: s.Binding == object.Local, dynamic: s.Dynamic,
				hook: hookOf(s.Name), cold: cold, thunk: isThunkName(s.Name), waits: slices.Contains(cancellationPoints, s.Name)})
			return true
		}
		im.markTarget(s.Addr) // a label without a type may be an entry, too
		return true
	})
	return found, cmp.Or(over, err)
}

// inPlace is where the symbols are, in the order of their addresses.
func (l *symbols) inPlace() []placed {
	all := hugepage.Make[placed](l.n)[:0]
	for i := range l.n {
		all = append(all, placed{l.at(i).addr, i})
	}
	return byPlace(all)
}

// eachAddress calls visit for the symbols of each address, which come in the order of addresses. The best name comes first.
func (l *symbols) eachAddress(all []placed, visit func(list []*symbol)) {
	var list []*symbol
	for from, to := 0, 0; from < len(all); from = to {
		list = list[:0]
		for ; to < len(all) && all[to].addr == all[from].addr; to++ {
			list = append(list, l.at(all[to].index))
		}
		if len(list) > 1 {
			visit(sortNames(list))
		} else {
			visit(list)
		}
	}
}

// placed is the address of a symbol, or of a function, and its index.
type placed struct {
	addr  uint64
	index int
}

// byPlace sorts by address, keeping the order of those of one address. It uses the slice given, and may return another. It goes digit by
// digit: a million take a fifth of the time of comparing them.
func byPlace(all []placed) []placed {
	const digit = 11
	differ, first := uint64(0), uint64(0)
	for i := range all {
		if i == 0 {
			first = all[i].addr
		}
		differ |= all[i].addr ^ first
	}
	other := hugepage.Make[placed](len(all))
	for shift := 0; shift < 64 && differ>>shift != 0; shift += digit {
		var at [1<<digit + 1]int // where the next with that digit goes
		for i := range all {
			at[all[i].addr>>shift%(1<<digit)+1]++
		}
		for i := range 1 << digit {
			at[i+1] += at[i]
		}
		for _, p := range all {
			to := &at[p.addr>>shift%(1<<digit)]
			other[*to] = p
			*to++
		}
		all, other = other, all
	}
	return all
}

// sortNames sorts the symbols of one address, the best name first. Of those of one name, from several tables, the first is
// kept and told what the others know better.
func sortNames(list []*symbol) []*symbol {
	if len(list) == 2 && list[0].name == list[1].name { // in both tables, as most
		list[0].also(list[1])
		return list[:1]
	}
	slices.SortStableFunc(list, func(a, b *symbol) int { return cmp.Compare(a.name, b.name) })
	once := list[:1]
	for _, s := range list[1:] {
		first := once[len(once)-1]
		if s.name != first.name {
			once = append(once, s)
			continue
		}
		first.also(s)
	}
	slices.SortFunc(once, betterName)
	return once
}

// also tells a symbol what another table knows better.
func (s *symbol) also(other *symbol) {
	s.dynamic = s.dynamic || other.dynamic
	s.size = cmp.Or(s.size, other.size)
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
