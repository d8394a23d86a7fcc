package lint

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
)

const (
	// maxTableSearch is how many instructions before a jump are looked at for what makes its target.
	maxTableSearch = 24
	// maxTable bounds the entries of a table.
	maxTable = 1 << 12
)

// tableSearch is what was found of the way to a jump through a table. Registers are -1 where none is looked for.
type tableSearch struct {
	reg      int // the jump's target, until its making is found
	base     int // holds the table's address
	index    int // the index into the table
	addr     uint64
	based    bool  // addr is known
	limit    int64 // the highest index, -1 until it is known
	loaded   bool  // the load from the table was found
	absolute bool  // entries are addresses
}

// amd64Targets returns where an indirect jump through a table leads: all of the table's entries, whose number the
// comparison before tells. It returns nothing when anything about it is in doubt. read returns memory.
//
// Two forms are known: 32-bit offsets from the table itself, loaded by movsxd and added to its address; and addresses at
// a fixed place, which the jump goes by.
func amd64Targets(f *function, id int32, before []int32, read func(addr, n uint64) ([]byte, error)) []uint64 {
	jump := &f.nodes[id].inst.x86
	t := tableSearch{reg: -1, base: -1, index: -1, limit: -1}
	switch {
	case !jump.HasMem:
		t.reg = int(jump.RM & 15)
	case jump.Base == amd64.NoReg && jump.Index != amd64.NoReg && jump.Scale == 8 && jump.Disp > 0:
		t.absolute, t.loaded, t.based, t.addr, t.index = true, true, true, uint64(jump.Disp), int(jump.Index)
	default:
		return nil
	}
	for range maxTableSearch {
		next := id
		if id = before[id]; id < 0 || !t.look(&f.nodes[id], &f.nodes[next]) {
			return nil
		}
		if t.loaded && t.based && t.limit >= 0 {
			return f.readTable(&t, read)
		}
	}
	return nil
}

// look takes in one more instruction, which control comes to before next; false ends the search.
func (t *tableSearch) look(n, next *node) bool {
	in := &n.inst.x86
	if in.Kind == amd64.Call || in.Kind == amd64.IndirectCall {
		return false
	}
	if in.Encoding == amd64.Legacy && in.Map == amd64.MapPrimary {
		switch op := in.Opcode; {
		case op == 0x63 && in.HasMem && int(in.Reg&15) == t.reg: // movsxd reg, [base+index*4]
			return t.load(in)
		case (op == 0x01 || op == 0x03) && in.Mod == 3 && t.base < 0 && t.isSum(in): // add reg, base
			return true
		case op == 0x8D && in.RIPRelative && t.base == int(in.Reg&15): // lea base, [rip+table]
			t.addr, t.based, t.base = n.inst.data, true, -1
			return true
		case (op == 0x89 || op == 0x8B) && in.Mod == 3 && t.copies(in):
			return true
		case (op == 0x83 || op == 0x81 || op == 0x80) && in.Reg&7 == 7 && in.Mod == 3 && int(in.RM&15) == t.index,
			(op == 0x3C || op == 0x3D) && t.index == int(amd64.RAX): // cmp index, limit; ja
			if !amd64Above(&next.inst) {
				return false
			}
			t.limit = in.Imm
			return t.limit >= 0 && t.limit < maxTable
		}
	}
	written := in.GPRWritten()
	for _, r := range [...]int{t.reg, t.base, t.index} {
		if r >= 0 && written>>r&1 != 0 {
			return false
		}
	}
	return true
}

// load takes in the load of an offset.
func (t *tableSearch) load(in *amd64.Inst) bool {
	if in.Scale != 4 || in.Base < 0 || in.Base >= amd64.RIP || in.Disp != 0 || int(in.Base) != t.base {
		return false
	}
	t.loaded, t.reg, t.index = true, -1, int(in.Index)
	return true
}

// isSum takes in that the jump's target is the offset plus the table's address.
func (t *tableSearch) isSum(in *amd64.Inst) bool {
	to, by := int(in.RM&15), int(in.Reg&15)
	if in.Opcode == 0x03 {
		to, by = by, to
	}
	if to != t.reg || t.loaded {
		return false
	}
	t.base = by
	return true
}

// copies follows the index to the register that it was copied from.
func (t *tableSearch) copies(in *amd64.Inst) bool {
	to, from := int(in.RM&15), int(in.Reg&15)
	if in.Opcode == 0x8B {
		to, from = from, to
	}
	if to != t.index || t.index < 0 {
		return false
	}
	t.index = from
	return true
}

// readTable reads the entries. All must be in the function.
func (f *function) readTable(t *tableSearch, read func(addr, n uint64) ([]byte, error)) []uint64 {
	size := uint64(4)
	if t.absolute {
		size = 8
	}
	count := uint64(t.limit) + 1
	data, err := read(t.addr, count*size)
	if err != nil || uint64(len(data)) < count*size {
		return nil
	}
	targets := make([]uint64, 0, count)
	for k := range count {
		to := t.addr + uint64(int64(int32(binary.LittleEndian.Uint32(data[size*k:]))))
		if t.absolute {
			to = binary.LittleEndian.Uint64(data[size*k:])
		}
		if f.partAt(to) < 0 {
			return nil
		}
		targets = append(targets, to)
	}
	return targets
}
