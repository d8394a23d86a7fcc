package lint

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/arm64"
)

// arm64Search looks back from a jump for what makes its target.
type arm64Search struct {
	f      *function
	before []int32
	from   map[int32]int32 // by node: the one that branches there, -1 where there are several
	left   int             // instructions that may still be looked at
}

const (
	// maxTableSteps is how many instructions are looked at for one jump.
	maxTableSteps = 256
	// maxCopies is how often a value may have been copied or computed anew.
	maxCopies = 8
)

// arm64Targets returns where an indirect jump through a table leads: all of the table's entries, whose number the
// comparison before tells. It returns nothing when anything about it is in doubt. read returns memory.
//
// Entries are bytes, halves or words: distances, in instructions or bytes, from an address that the code names. gcc names a label among
// the cases, clang too, or the table.
func arm64Targets(f *function, id int32, before []int32, read func(addr, n uint64) ([]byte, error)) []uint64 {
	t := arm64Search{f: f, before: before, left: maxTableSteps}
	sum, ok := t.source(id, f.nodes[id].inst.a64.Rn())
	if !ok {
		return nil
	}
	in := &f.nodes[sum].inst.a64
	extended := isAddExtended(in.Word)
	if in.Word>>31 == 0 || in.Word>>29&3 != 0 || !extended && !isAddShifted(in.Word) {
		return nil
	}
	shift := uint(in.Word >> 10 & 63)
	if extended {
		shift &= 7
	} else if in.Word>>22&3 != 0 { // not lsl
		return nil
	}
	offset, named := in.Rm(), in.Rn()
	base, ok := t.address(sum, named, 0)
	if !ok && !extended && shift == 0 {
		offset = in.Rn()
		base, ok = t.address(sum, in.Rm(), 0)
	}
	if !ok {
		return nil
	}
	at, ok := t.source(sum, offset)
	if !ok {
		return nil
	}
	load := &f.nodes[at].inst.a64
	if load.Class != arm64.Load || !load.Index || load.Writeback || load.Size > 4 || isVector(load.Word) || load.Size > 1 && load.Word>>12&1 == 0 {
		return nil
	}
	table, ok := t.address(at, load.Rn(), 0)
	if !ok {
		return nil
	}
	limit, ok := t.limit(at, load.Rm())
	if !ok {
		return nil
	}
	signed := load.Word>>23&1 != 0 || extended && in.Word>>15&1 != 0 // ldrs; sxtb, sxth, sxtw
	return f.readDistances(distances{table, base, uint64(load.Size), uint64(limit) + 1, shift, signed}, read)
}

// back returns the node that control comes from, and whether by a branch.
func (t *arm64Search) back(id int32) (at int32, branched bool) {
	if t.left--; t.left < 0 {
		return -1, false
	}
	if at = t.before[id]; at >= 0 {
		return at, false
	}
	if t.from == nil {
		t.from = map[int32]int32{}
		for k := range t.f.nodes {
			if to := t.f.nodes[k].target; to >= 0 {
				if _, more := t.from[to]; more {
					t.from[to] = -1
				} else {
					t.from[to] = int32(k)
				}
			}
		}
	}
	if at, ok := t.from[id]; ok {
		return at, true
	}
	return -1, false
}

// definition returns the instruction by which a register got its value before a node; false where that is a call, or is not found.
func (t *arm64Search) definition(id int32, r arm64.Reg) (int32, bool) {
	for {
		if id, _ = t.back(id); id < 0 {
			return 0, false
		}
		in := &t.f.nodes[id].inst
		if in.calls() && (r <= arm64.X18 || r == arm64.LR) {
			return 0, false
		}
		if in.a64.WritesReg(r) {
			return id, true
		}
	}
}

// source is definition, but a copy's is where it was copied from.
func (t *arm64Search) source(id int32, r arm64.Reg) (int32, bool) {
	for range maxCopies {
		d, ok := t.definition(id, r)
		if !ok || !isMove(t.f.nodes[d].inst.a64.Word) {
			return d, ok
		}
		id, r = d, t.f.nodes[d].inst.a64.Rm()
	}
	return 0, false
}

// isMove says whether a word is mov of a register to another, of either size.
func isMove(word uint32) bool { return word&0x7FE0FFE0 == 0x2A0003E0 }

// address returns what a register holds before a node, if that is an address that the code names.
func (t *arm64Search) address(id int32, r arm64.Reg, depth int) (uint64, bool) {
	d, ok := t.source(id, r)
	if !ok || depth == maxCopies {
		return 0, false
	}
	n := &t.f.nodes[d]
	switch in := &n.inst.a64; {
	case in.Class == arm64.Address:
		return in.MemTarget(n.addr)
	case isAddImmediate(in.Word):
		base, ok := t.address(d, in.Rn(), depth+1)
		return base + uint64(in.Immediate()), ok
	case isSubImmediate(in.Word):
		base, ok := t.address(d, in.Rn(), depth+1)
		return base - uint64(in.Immediate()), ok
	}
	return 0, false
}

// limit returns the highest index that a register has before a node: that with which it is compared, and above which a branch leads
// elsewhere.
func (t *arm64Search) limit(id int32, r arm64.Reg) (int64, bool) {
	bound := int64(-1) // what the immediate is more than the limit, once a branch is known to keep to it
	for copies := 0; copies < maxCopies; {
		at, branched := t.back(id)
		if id = at; id < 0 {
			return 0, false
		}
		i := &t.f.nodes[id].inst
		in := &i.a64
		const compares = 0x7100001F // subs wzr, w0, #0; bit 31 is for 64 bits
		switch c := arm64Condition(i); {
		case i.calls():
			return 0, false
		case c == condHI && !branched, c == condLS && branched:
			bound = 0
		case c == condHS && !branched, c == condLO && branched:
			bound = 1
		case bound >= 0 && in.Word&0x7FC0001F == compares && in.Rn() == r:
			limit := in.Immediate() - bound
			return limit, limit >= 0 && limit < maxTable
		case in.FlagsChanged():
			bound = -1
		}
		if !in.WritesReg(r) {
			continue
		}
		if !isMove(in.Word) || in.Rm() == 31 {
			return 0, false
		}
		r = in.Rm()
		copies++
	}
	return 0, false
}

// distances is a table of distances from base.
type distances struct {
	table, base uint64
	size, count uint64 // bytes of an entry, and how many there are
	shift       uint
	signed      bool
}

// readDistances reads the entries. All must lead into the function.
func (f *function) readDistances(d distances, read func(addr, n uint64) ([]byte, error)) []uint64 {
	data, err := read(d.table, d.count*d.size)
	if err != nil || uint64(len(data)) < d.count*d.size {
		return nil
	}
	targets := make([]uint64, 0, d.count)
	for k := range d.count {
		var entry [8]byte
		copy(entry[:], data[k*d.size:][:d.size])
		distance := binary.LittleEndian.Uint64(entry[:])
		if d.signed {
			distance = uint64(int64(distance<<(64-8*d.size)) >> (64 - 8*d.size))
		}
		to := d.base + distance<<d.shift
		if to%arm64.Len != 0 || f.partAt(to) < 0 {
			return nil
		}
		targets = append(targets, to)
	}
	return targets
}
