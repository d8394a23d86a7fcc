package symbols

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
)

// texts collects the strings of a map, each once. Offsets 0 and nameless are empty ones.
type texts struct {
	out   []byte
	slots []uint64 // upper half: of the hash; lower half: offset, 0 when free
	count int
	seed  maphash.Seed
}

// newTexts makes room for about count strings of the length that names of C have.
func newTexts(count int) *texts {
	return &texts{out: make([]byte, 2, 1<<12+24*count), slots: make([]uint64, 1<<12<<bits.Len(uint(count)>>11)), seed: maphash.MakeSeed()}
}

// add returns the offset of a string. When all together are too long for offsets
// of 32 bits it returns 0, and full is true from then on.
func (t *texts) add(s []byte) uint32 {
	if len(s) == 0 {
		return 0
	}
	if 2*t.count >= len(t.slots) {
		t.grow()
	}
	const part = math.MaxUint32 << 32
	hash := maphash.Bytes(t.seed, s)
	mask := uint64(len(t.slots) - 1)
	at := hash & mask
	for ; t.slots[at] != 0; at = (at + 1) & mask {
		if t.slots[at]&part == hash&part && string(t.at(uint32(t.slots[at]))) == string(s) {
			return uint32(t.slots[at])
		}
	}
	off := len(t.out)
	if t.full() {
		return 0
	}
	t.out = binary.AppendUvarint(t.out, uint64(len(s)))
	t.out = append(t.out, s...)
	t.slots[at] = hash&part | uint64(off)
	t.count++
	return uint32(off)
}

// full says that no more strings can be added.
func (t *texts) full() bool { return uint64(len(t.out)) > math.MaxUint32-maxText }

// maxText bounds one string. The longest names of template-heavy programs have some
// tens of kilobytes.
const maxText = 1 << 24

// at returns the string at an offset.
func (t *texts) at(off uint32) []byte {
	n, size := binary.Uvarint(t.out[off:])
	start := int(off) + size
	return t.out[start : start+int(n)]
}

// length returns the length of the string at an offset.
func (t *texts) length(off uint32) uint64 {
	n, _ := binary.Uvarint(t.out[off:])
	return n
}

func (t *texts) grow() {
	t.slots = make([]uint64, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for off := 2; off < len(t.out); {
		n, size := binary.Uvarint(t.out[off:])
		end := off + size + int(n)
		hash := maphash.Bytes(t.seed, t.out[off+size:end])
		at := hash & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = hash&(math.MaxUint32<<32) | uint64(off)
		off = end
	}
}
