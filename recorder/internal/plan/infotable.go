package plan

import (
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/object"
)

// GHC compiles a function so that each place inside it to which something returns has a table in front, of which the garbage collector reads
// every byte: what the stack frame is like, a word, and what kind of table it is. The code before it puts the address of the place on the
// stack and jumps away; so it is known where the table begins and ends, and where code goes on.

// tableSize is the size of such a table, but for that of a program that is made for profiling, and maxTableKind is above all kinds there
// are (rts/storage/ClosureTypes.h).
const (
	tableSize    = 16
	maxTableKind = 64
)

// maxLabels bounds what a made-up function can cost.
const maxLabels = 1024

// noteLabel notes an address further on in the chunk that the instruction names without going there.
func (s *sweeper) noteLabel(pc uint64, in *amd64.Inst) {
	to, ok := in.MemTarget(pc)
	switch {
	case ok && isLea(in):
	case s.im.Object.Type == object.Executable && in.ImmSize == 4 && in.Imm > 0:
		to = uint64(in.Imm)
	default:
		return
	}
	if to > pc && to < s.c.end && to%8 == 0 && len(s.labels) < maxLabels {
		s.labels = append(s.labels, to)
	}
}

// behindTable is where code goes on behind the table that follows an instruction which ends at pc and leads elsewhere; 0 if none does. That
// nothing leads into it is seen when all branches are known, see tableTarget.
func (s *sweeper) behindTable(pc, end uint64) uint64 {
	at := pc
	var in amd64.Inst
	for at%8 != 0 {
		if !s.t.decode(&in, at, end) || !in.IsPadding() {
			return 0
		}
		at += uint64(in.Len)
	}
	to := at + tableSize
	if to >= end || !slices.Contains(s.labels, to) {
		return 0
	}
	if kind := binary.LittleEndian.Uint32(s.t.data[to-8-s.t.start:]); kind == 0 || kind >= maxTableKind {
		return 0
	}
	return to
}

// tablesIn are where the tables inside a chunk begin, padding in front included, and end, in turn.
func (im *Image) tablesIn(chunk int) []uint64 { return im.swept[chunk/batchSize].tables.of(chunk) }

// claimTables sees to it that no site takes of a table.
func (im *Image) claimTables() {
	for i := range im.chunks {
		for list := im.tablesIn(i); len(list) > 0; list = list[2:] {
			im.textAt(list[0]).claim(list[1]-tableSize, list[1])
		}
	}
}

// tableTarget returns an address in a table to which control may come after all.
func (p *planner) tableTarget(chunk int) (addr uint64, ok bool) {
	for list := p.im.tablesIn(chunk); len(list) > 0; list = list[2:] {
		for a := list[0]; a < list[1]; a++ {
			if p.isTarget(a) {
				return a, true
			}
		}
	}
	return 0, false
}

// hasTables says whether there are tables inside the function.
func (p *planner) hasTables() bool {
	return slices.ContainsFunc(p.im.partsOf(p.f), func(i int32) bool { return len(p.im.tablesIn(int(i))) > 0 })
}

// onlyCalled leaves the exits and loops alone to which control comes only by returning into the function: the call ended when it jumped away,
// and its exit has been written there. Where a jump table leads isn't followed: then all are kept.
func (p *planner) onlyCalled() {
	if slices.ContainsFunc(p.insts, func(in inst) bool { return in.Kind == amd64.IndirectJump && in.role == rolePlain }) {
		return
	}
	reached := make([]bool, len(p.insts))
	todo := []int{0}
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for k < len(p.insts) && !reached[k] {
			in := &p.insts[k]
			reached[k] = true
			if to, ok := in.Target(in.addr); ok && in.Kind != amd64.Call {
				if j, own := p.indexOf(to); own && j < len(p.insts) && p.insts[j].addr == to {
					todo = append(todo, j)
				}
			}
			if in.Ends() {
				break
			}
			k++
		}
	}
	for k := range p.insts {
		if !reached[k] {
			p.insts[k].role = rolePlain
		}
	}
}
