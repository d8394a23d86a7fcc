package plan

import (
	"sync/atomic"

	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// bitset is a set of offsets that several goroutines may add to.
type bitset []uint32

// newBitsets makes four sets of offsets below n, side by side.
func newBitsets(n uint64) (sets [4]bitset) {
	size := (n + 31) / 32
	all := hugepage.Make[uint32](int(size) * len(sets))
	for i := range sets {
		sets[i], all = all[:size:size], all[size:]
	}
	return sets
}

func (b bitset) has(i uint64) bool { return atomic.LoadUint32(&b[i/32])>>(i%32)&1 != 0 }

func (b bitset) add(i uint64) {
	if !b.has(i) { // most are there already, and reading is cheap
		atomic.OrUint32(&b[i/32], 1<<(i%32))
	}
}

// adder adds to a set that other goroutines add to, too: word by word, for what comes in order.
type adder struct {
	set  bitset
	word uint64
	bits uint32
}

func (a *adder) add(i uint64) {
	if i/32 != a.word {
		a.flush()
		a.word = i / 32
	}
	a.bits |= 1 << (i % 32)
}

func (a *adder) flush() {
	if a.bits != 0 {
		atomic.OrUint32(&a.set[a.word], a.bits)
		a.bits = 0
	}
}

// addRange adds what is from from up to, and without, to.
func (b bitset) addRange(from, to uint64) {
	for ; from < to; from = from&^31 + 32 {
		if bits := wordRange(from, to); atomic.LoadUint32(&b[from/32])&bits != bits {
			atomic.OrUint32(&b[from/32], bits)
		}
	}
}

func (b bitset) removeRange(from, to uint64) {
	for ; from < to; from = from&^31 + 32 {
		atomic.AndUint32(&b[from/32], ^wordRange(from, to))
	}
}

// wordRange is the bits from from up to to that are in from's word.
func wordRange(from, to uint64) uint32 {
	all := ^uint32(0) << (from % 32)
	if end := from&^31 + 32; to < end {
		all &= ^uint32(0) >> (end - to)
	}
	return all
}
