package reel

import (
	"fmt"
	"sort"
)

// functionTable holds the functions by ID. IDs are consecutive from 1, in one
// block, unless a chunk of functions is lost; then there is a block for each
// stretch.
type functionTable struct {
	blocks []functionBlock
	count  int
}

type functionBlock struct {
	first uint32 // ID
	base  int    // how many functions the blocks before hold
	list  []Function
}

func (t *functionTable) add(first uint32, list []Function) error {
	next := uint32(1)
	if n := len(t.blocks); n > 0 {
		last := &t.blocks[n-1]
		next = last.first + uint32(len(last.list))
	}
	if first < next || uint64(first)+uint64(len(list)) > MaxID+1 {
		return fmt.Errorf("function %d follows function %d", first, next-1)
	}
	if len(t.blocks) > 0 && first == next {
		last := &t.blocks[len(t.blocks)-1]
		last.list = append(last.list, list...)
	} else {
		t.blocks = append(t.blocks, functionBlock{first: first, base: t.count, list: list})
	}
	t.count += len(list)
	return nil
}

// index returns the function's place among all functions, from 0, or -1 if the
// ID is not in the table.
func (t *functionTable) index(id uint32) int {
	i := sort.Search(len(t.blocks), func(i int) bool { return t.blocks[i].first > id })
	if i == 0 {
		return -1
	}
	b := &t.blocks[i-1]
	if n := id - b.first; n < uint32(len(b.list)) {
		return b.base + int(n)
	}
	return -1
}

// Function returns the function with the ID, and false if the reel does not
// describe it.
func (f *File) Function(id uint32) (Function, bool) {
	fn, ok := f.recorded(id)
	if !ok {
		return Function{}, false
	}
	named := *fn
	named.Name = f.naming(id, fn).Name
	return named, true
}

// recorded returns the function with the ID as the reel has it, and false if there is none.
func (f *File) recorded(id uint32) (*Function, bool) {
	t := &f.functions
	i := t.index(id)
	if i < 0 {
		return nil, false
	}
	b := sort.Search(len(t.blocks), func(j int) bool { return t.blocks[j].base > i }) - 1
	return &t.blocks[b].list[i-t.blocks[b].base], true
}

// FunctionCount is how many functions the table holds.
func (f *File) FunctionCount() int { return f.functions.count }

// Describes says whether the function with the ID is in the table.
func (f *File) Describes(id uint32) bool { return f.functions.index(id) >= 0 }

// Functions calls yield with each function and its ID, in order, until it
// returns false. It is an iter.Seq2.
func (f *File) Functions(yield func(id uint32, fn Function) bool) {
	f.eachKnown(func(id uint32, fn *Function, known *Naming) bool {
		named := *fn
		named.Name = known.Name
		return yield(id, named)
	})
}

// eachKnown calls yield with each function and what is known of it, in order, until it returns false.
func (f *File) eachKnown(yield func(id uint32, fn *Function, known *Naming) bool) {
	n := namings{f: f}
	for i := range f.functions.blocks {
		b := &f.functions.blocks[i]
		for from := 0; from < len(b.list); from += namedAtOnce {
			part := b.list[from:min(from+namedAtOnce, len(b.list))]
			for j := range part {
				n.add(b.first+uint32(from+j), &part[j])
			}
			known := n.ask()
			for j := range part {
				if !yield(b.first+uint32(from+j), &part[j], &known[j]) {
					return
				}
			}
		}
	}
}
