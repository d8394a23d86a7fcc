package object

import (
	"hash/maphash"
	"math/bits"
)

// symbolMerger collects symbols and drops repetitions. Its hash table holds
// indices into list beside a part of the hash, so that the 180,000 symbols of a
// large program cost hardly more than one cache miss each; a map keyed by name and
// address takes three times as long.
type symbolMerger struct {
	list  []Symbol
	slots []uint64 // upper half: of the hash; lower half: index+1 into list, 0 when free
	seed  maphash.Seed

	// bySection tells symbols apart whose addresses are offsets in their sections.
	bySection bool
}

// newSymbolMerger makes room for count symbols; more may be added.
func newSymbolMerger(count int) *symbolMerger {
	m := &symbolMerger{list: make([]Symbol, 0, count), seed: maphash.MakeSeed()}
	m.resize(count)
	return m
}

// resize rebuilds the hash table for count symbols at a load of a half at most.
func (m *symbolMerger) resize(count int) {
	old := m.slots
	m.slots = make([]uint64, 2<<bits.Len(uint(count)|7))
	for _, slot := range old {
		if slot == 0 {
			continue
		}
		at := m.start(slot)
		for m.slots[at] != 0 {
			at = m.next(at)
		}
		m.slots[at] = slot
	}
}

const hashPart uint64 = 0xffffffff_00000000

// hash mixes name and address. The seed is random, so that no file can be made
// whose symbols all meet in one place.
func (m *symbolMerger) hash(s *Symbol) uint64 {
	const mixer = 0x9e3779b97f4a7c15 // 2^64 / golden ratio (Fibonacci hashing)
	return (maphash.String(m.seed, s.Name) + s.Addr) * mixer & hashPart
}

// start is where the search for a hash begins, next where it goes on.
func (m *symbolMerger) start(hash uint64) int {
	return int(hash >> 32 & uint64(len(m.slots)-1))
}

func (m *symbolMerger) next(at int) int { return (at + 1) & (len(m.slots) - 1) }

// add appends a symbol unless the same name at the same place is there; that one
// then learns what the new one knows better.
func (m *symbolMerger) add(s *Symbol) {
	if 2*(len(m.list)+1) > len(m.slots) {
		m.resize(2 * len(m.list))
	}
	hash := m.hash(s)
	at := m.start(hash)
	for ; m.slots[at] != 0; at = m.next(at) {
		if m.slots[at]&hashPart != hash {
			continue
		}
		old := &m.list[uint32(m.slots[at])-1]
		if old.Addr == s.Addr && old.Name == s.Name && old.Defined() == s.Defined() && (!m.bySection || old.Section == s.Section) {
			old.learn(s)
			return
		}
	}
	m.list = append(m.list, *s)
	m.slots[at] = hash | uint64(len(m.list))
}

// learn takes over from a repetition what this symbol lacks.
func (s *Symbol) learn(other *Symbol) {
	s.Dynamic = s.Dynamic || other.Dynamic
	if s.Version == "" {
		s.Version = other.Version
	}
	if s.Size == 0 {
		s.Size = other.Size
	}
	if s.Kind == NoType {
		s.Kind = other.Kind
	}
}
