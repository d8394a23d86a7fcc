package discover

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// site is a jump by a table.
type site struct {
	at     uint64
	bases  [4]uint64 // where the table may be, the likeliest first; 0 for none
	limit  uint32    // how many targets it has at most
	offset bool      // its entries are offsets of 32 bits from its start, else addresses
}

// How far from a jump its targets may be, how many a table may have if nothing says, and how many are read for the jumps of a piece
// of text.
const (
	labelReach = 1 << 20
	mostLabels = 4096
	allLabels  = 1 << 20
)

// site is what is known of the jump at that address.
func (tr *tracker) site(at uint64, in *amd64.Inst) site {
	j := site{at: at, limit: mostLabels, offset: !in.HasMem}
	if tr.limit >= 0 && tr.limit < mostLabels && tr.age <= recent {
		j.limit = uint32(tr.limit) + 1
	}
	if in.HasMem && in.Base == amd64.NoReg && in.Disp > 0 {
		j.bases[0] = uint64(in.Disp)
		return j
	}
	for i := range min(tr.n, len(tr.bases)) {
		j.bases[i] = tr.bases[(tr.n-1-i)%len(tr.bases)]
	}
	return j
}

// findTables notes where the tables of all jumps lead. A table ends where another begins.
func (s *state) findTables() {
	s.sites = slices.Concat(s.switches...)
	s.switches = nil
	slices.SortFunc(s.sites, func(a, b site) int { return cmp.Compare(a.at, b.at) })
	for i := range s.sites {
		for _, base := range s.sites[i].bases {
			if base != 0 && s.marks(base) == nil {
				s.bases = append(s.bases, base)
			}
		}
	}
	slices.Sort(s.bases)
	s.bases = slices.Compact(s.bases)
	left, piece := allLabels, uint64(0)
	for i := range s.sites {
		j := &s.sites[i]
		if p := j.at / shard; p != piece {
			left, piece = allLabels, p
		}
		s.eachLabel(j, &left, func(to uint64) { s.mark(to, labelOf) })
	}
}

// siteAt returns what is known of the jump at that address, nil if it is none by a table.
func (s *state) siteAt(at uint64) *site {
	i, found := slices.BinarySearchFunc(s.sites, at, func(j site, at uint64) int { return cmp.Compare(j.at, at) })
	if !found {
		return nil
	}
	return &s.sites[i]
}

// eachLabel calls visit with where the table of a jump leads. left is how many targets may be looked at.
func (s *state) eachLabel(j *site, left *int, visit func(to uint64)) {
	if s.Read == nil {
		return
	}
	within := Range{j.at - labelReach, j.at + labelReach}
	if j.limit == mostLabels { // what follows a table of unknown length may be addresses of functions
		within = s.between(j.at)
	}
	for _, base := range j.bases {
		if base == 0 || s.marks(base) != nil {
			continue
		}
		size := uint64(8)
		if j.offset {
			size = 4
		}
		room := uint64(j.limit) * size
		if next, _ := slices.BinarySearch(s.bases, base+1); next < len(s.bases) {
			room = min(room, s.bases[next]-base)
		}
		n := 0
		for b := s.Read(base, room); uint64(len(b)) >= size; b = b[size:] {
			to := base
			if j.offset {
				to += uint64(int64(int32(binary.LittleEndian.Uint32(b))))
			} else {
				to = binary.LittleEndian.Uint64(b)
			}
			if *left--; *left < 0 || to-within.Start >= within.End-within.Start || s.marks(to) == nil {
				break
			}
			visit(to)
			n++
		}
		if n > 1 {
			return
		}
	}
}

// between is what lies between the functions before and behind an address that are called and near, as far as there are such.
func (s *state) between(addr uint64) Range {
	const near = 1 << 14
	r := Range{addr - labelReach, addr + labelReach}
	m := s.marks(addr)
	if m == nil {
		return r
	}
	off := addr - m.Start
	for i := off; i > 0 && off-i < near; i-- {
		if m.called.has(i) {
			r.Start = m.Start + i
			break
		}
	}
	for i := off + 1; i < uint64(len(m.Data)) && i-off < near; i++ {
		if m.called.has(i) {
			r.End = m.Start + i
			break
		}
	}
	return r
}
