package pclntab

import (
	"sort"

	"github.com/callreel/callreel/object"
)

// An Inlined is one call that was inlined into a function, or into another such call.
type Inlined struct {
	Parent int    // index of the call that it is in, -1 for the function itself
	Site   uint64 // link address of code whose line in the parent is the call's
	Ranges []object.Range
	Name   NameRef // of what was called
}

const (
	inlinedTree  = 3 // FUNCDATA_InlTree
	inlinedIndex = 2 // PCDATA_InlTreeIndex
	// maxInlined bounds how deep calls are inlined into one another. The compiler stops far earlier.
	maxInlined = 256
)

// Inlined returns the calls that were inlined into a function, parents before what is in them. A call's ranges hold those of the
// calls in it. It is empty where the table doesn't tell. The memory it takes is the image's to allow, see object.Image.Take.
func (t *Table) Inlined(f Func) ([]Inlined, error) {
	tree, ok := t.tree(f)
	table, has := t.pcdata(f, inlinedIndex)
	if !ok || !has {
		return nil, nil
	}
	b := treeBuilder{t: t, f: f, tree: tree, known: map[int32]int{}}
	t.each(f, table, func(start, end uint64, v int32) bool {
		if b.err = t.image.Take(16, "inlined calls"); b.err != nil {
			return false
		}
		b.pieces = append(b.pieces, piece{end, v})
		return true
	})
	start := f.Start
	for _, p := range b.pieces {
		b.extend(start, p.end, p.call)
		start = p.end
	}
	return b.calls, b.err
}

// treeBuilder makes the list of calls of one function.
type treeBuilder struct {
	t      *Table
	f      Func
	tree   uint64  // address of its first call
	pieces []piece // of the function, one behind the other
	calls  []Inlined
	known  map[int32]int // where in calls
	err    error
}

// piece is code up to end that is in a call, -1 for none.
type piece struct {
	end  uint64
	call int32
}

// extend adds code to the ranges of a call and of all that it is in.
func (b *treeBuilder) extend(start, end uint64, number int32) {
	for k, depth := b.call(number, 0), 0; k >= 0 && depth < maxInlined && b.err == nil; k, depth = b.calls[k].Parent, depth+1 {
		r := &b.calls[k].Ranges
		if n := len(*r); n > 0 && (*r)[n-1].End == start {
			(*r)[n-1].End = end
			continue
		}
		if b.err = b.t.image.Take(64, "ranges of inlined calls"); b.err == nil {
			*r = append(*r, object.Range{Start: start, End: end})
		}
	}
}

// callAt returns the call that an address is in.
func (b *treeBuilder) callAt(pc uint64) int32 {
	k := sort.Search(len(b.pieces), func(k int) bool { return b.pieces[k].end > pc })
	if k == len(b.pieces) {
		return -1
	}
	return b.pieces[k].call
}

// call returns the index of a call, -1 for none.
func (b *treeBuilder) call(number int32, depth int) int {
	if k, ok := b.known[number]; ok {
		return k
	}
	if number < 0 || number >= maxTree || depth >= maxInlined || b.err != nil {
		return -1
	}
	if b.err = b.t.image.Take(128, "inlined calls"); b.err != nil {
		return -1
	}
	c, ok := b.t.inlinedAt(b.tree+uint64(number)*b.t.inlinedSize(), b.f)
	if !ok {
		return -1
	}
	b.known[number] = -1 // while it is being looked for: no call is in itself
	if c.Site < b.f.Start || c.Site >= b.f.End {
		return -1
	}
	if up := b.callAt(c.Site); up >= 0 {
		c.Parent = b.call(up, depth+1)
	}
	if len(b.t.Name(c.Name)) == 0 {
		return -1
	}
	b.calls = append(b.calls, c)
	b.known[number] = len(b.calls) - 1
	return len(b.calls) - 1
}

// pcdata returns a table of values by PC of a function.
func (t *Table) pcdata(f Func, k uint32) (table uint32, ok bool) {
	n := t.field(f, offPCDatas)
	at := f.at + t.fixed() + 4*uint64(k)
	if k >= n || at+4 > uint64(len(t.funcs)) {
		return 0, false
	}
	table = t.order.Uint32(t.funcs[at:])
	return table, table != 0
}

// funcdata returns the offset of a function's data of a kind.
func (t *Table) funcdata(f Func, k uint32) (off uint32, ok bool) {
	if f.at+t.fixed() > uint64(len(t.funcs)) {
		return 0, false
	}
	n := uint32(t.funcs[f.at+t.fixed()-1])
	at := f.at + t.fixed() + 4*(uint64(t.field(f, offPCDatas))+uint64(k))
	if k >= n || at+4 > uint64(len(t.funcs)) {
		return 0, false
	}
	off = t.order.Uint32(t.funcs[at:])
	return off, off != ^uint32(0)
}

// maxTree bounds the number of a function's inlined calls.
const maxTree = 1 << 16

// tree returns the address of a function's first inlined call.
func (t *Table) tree(f Func) (uint64, bool) {
	off, ok := t.funcdata(f, inlinedTree)
	return t.data0 + uint64(off), ok && t.data0 != 0
}

// inlinedSize is the size of struct inlinedCall (runtime/symtabinl.go): ID, padding, name, the site, first line; before Go 1.20 parent,
// ID, padding, file, line, name, the site.
func (t *Table) inlinedSize() uint64 {
	if t.old {
		return 20
	}
	return 16
}

// inlinedAt reads one.
func (t *Table) inlinedAt(addr uint64, f Func) (Inlined, bool) {
	b, err := t.image.ReadAddr(addr, t.inlinedSize())
	if err != nil {
		return Inlined{}, false
	}
	name, site := 4, 8
	if t.old {
		name, site = 12, 16
	}
	return Inlined{Parent: -1, Site: f.Start + uint64(t.order.Uint32(b[site:])), Name: NameRef(t.order.Uint32(b[name:]))}, true
}
