package symbols

import (
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/callreel/callreel/dwarf"
)

// A nameRef names a function: one of DWARF's strings, or a name of the symbol table.
// 0 is no name. Equal ones are the same name; different ones may be too.
type nameRef uint64

// nameless is the name of a function that has none, as opposed to 0, which is that of
// a node that is no function.
const nameless nameRef = 1

// symbolName is the top byte, which dwarf.String does not use, of a reference to a
// name of the symbol table; the index is below.
const symbolName nameRef = 0xff << 56

// A callee is a name in connection with a file, see block.
type callee struct {
	name nameRef
	file uint32
}

func (c callee) hash(seed uint64) uint64 {
	return mix(mix(uint64(c.name)^seed) + uint64(c.file))
}

// A sourceFile is dwarf.File as a key.
type sourceFile dwarf.File

func (f sourceFile) hash(seed uint64) uint64 {
	return mix(mix(mix(uint64(f.Name)^seed)+uint64(f.Dir)) + uint64(f.CompDir))
}

// mix spreads a number's bits: multiplication by 2^64 / golden ratio (Fibonacci
// hashing), the upper half folded into the lower.
func mix(v uint64) uint64 {
	v *= 0x9e3779b97f4a7c15
	return v ^ v>>32
}

// key is what a numbering numbers.
type key interface {
	comparable
	hash(seed uint64) uint64
}

// A numbering numbers keys in the order in which they come first.
type numbering[K key] struct {
	list  []K
	slots []slot[K] // at most half are taken
	taken int
	seed  uint64 // random, so that no file can be made whose keys all meet in one place
}

// A slot holds a key, so that finding it costs one miss of the processor's caches, and
// its number+1, 0 when the slot is free.
type slot[K key] struct {
	key    K
	number uint32
}

// number returns the key's number.
func (t *numbering[K]) number(k K) uint32 {
	if 2*t.taken >= len(t.slots) {
		t.resize(max(1024, 2*len(t.slots)))
	}
	s := t.find(k)
	if s.number == 0 {
		*s = slot[K]{k, t.add(k) + 1}
		t.taken++
	}
	return s.number - 1
}

// add gives a key a new number, which number does not return.
func (t *numbering[K]) add(k K) uint32 {
	t.list = append(t.list, k)
	return uint32(len(t.list) - 1)
}

// find returns the slot that has the key, or the free one where it belongs.
func (t *numbering[K]) find(k K) *slot[K] {
	mask := uint64(len(t.slots) - 1)
	for at := k.hash(t.seed) & mask; ; at = (at + 1) & mask {
		if s := &t.slots[at]; s.number == 0 || s.key == k {
			return s
		}
	}
}

// reserve makes room for count keys.
func (t *numbering[K]) reserve(count int) {
	t.list = slices.Grow(t.list, count)
	if n := 2 << bits.Len(uint(count)); n > len(t.slots) {
		t.resize(n)
	}
}

// resize rebuilds the table with n slots, a power of two.
func (t *numbering[K]) resize(n int) {
	if t.slots == nil {
		t.seed = rand.Uint64()
	}
	old := t.slots
	t.slots = make([]slot[K], n)
	for k := range old {
		if old[k].number != 0 {
			*t.find(old[k].key) = old[k]
		}
	}
}
