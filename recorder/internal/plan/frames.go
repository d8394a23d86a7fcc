package plan

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/cfi"
)

// frameRow says of a range of code whether the stack frame is gone.
type frameRow struct {
	span64
	gone, known bool
	depth       int64 // how far the CFA is above the stack pointer, -1 if that isn't known
}

// frameRows answers what call frame information says about stack frames. Its buffers are reused.
type frameRows struct {
	im      *Image
	machine cfi.Machine
	fde     *cfi.FDE   // whose rows were asked for last
	rows    []frameRow // of fde
}

// gone says what CFI knows of addr: whether the CFA is where it is at a function's first instruction.
func (p *frameRows) gone(addr uint64) (known, gone bool) {
	row := p.at(addr)
	return row != nil && row.known, row != nil && row.gone
}

// depth is how far the CFA is above the stack pointer at addr, -1 if that isn't known.
func (p *frameRows) depth(addr uint64) int64 {
	if row := p.at(addr); row != nil {
		return row.depth
	}
	return -1
}

// at returns what CFI says of addr, nil if nothing.
func (p *frameRows) at(addr uint64) *frameRow {
	if p.im.cfi == nil {
		return nil
	}
	f, ok := p.im.cfi.Find(addr)
	if !ok {
		return nil
	}
	if f != p.fde { // all rows at once: a function may have many indirect jumps
		p.fde, p.rows = f, p.rows[:0]
		err := p.machine.Rows(f, func(r *cfi.Row) bool {
			arch, reg := p.im.processor, uint32(r.CFA.Reg)
			gone := r.CFA.Kind == cfi.RegOffset && reg == arch.sp && r.CFA.Offset == arch.fresh
			known := arch.frame == 0 || r.CFA.Kind == cfi.RegOffset && (reg == arch.sp || reg == arch.frame)
			depth := int64(-1)
			if r.CFA.Kind == cfi.RegOffset && reg == arch.sp {
				depth = r.CFA.Offset
			}
			p.rows = append(p.rows, frameRow{span64{r.Start, r.End}, gone, known, depth})
			return true
		})
		if err != nil {
			p.rows = p.rows[:0]
		}
	}
	i, found := slices.BinarySearchFunc(p.rows, addr, func(r frameRow, a uint64) int { return cmp.Compare(r.end, a) })
	if found {
		i++
	}
	if i == len(p.rows) || p.rows[i].start > addr {
		return nil
	}
	return &p.rows[i]
}
