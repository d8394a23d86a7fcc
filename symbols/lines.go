package symbols

import (
	"cmp"
	"slices"
	"sort"

	"github.com/callreel/callreel/dwarf"
)

// A sequence is a run of rows without a gap (DWARF 5 §6.2.5): rows[first:last], and
// the end at rows[last].
type sequence struct {
	low, high   uint64
	first, last int
}

// lines are the rows of one unit, its sequences sorted by address.
type lines struct {
	rows      []dwarf.Row
	sequences []sequence
}

// load finds the sequences. One without an end, or without an address, is left out.
func (l *lines) load(rows []dwarf.Row) {
	l.rows, l.sequences = rows, l.sequences[:0]
	first := 0
	for k := range rows {
		if !rows[k].End {
			continue
		}
		if first < k && rows[first].Addr < rows[k].Addr {
			l.sequences = append(l.sequences, sequence{rows[first].Addr, rows[k].Addr, first, k})
		}
		first = k + 1
	}
	byAddress := func(a, b sequence) int { return cmp.Compare(a.low, b.low) }
	if !slices.IsSortedFunc(l.sequences, byAddress) {
		slices.SortStableFunc(l.sequences, byAddress)
	}
}

// A lineCursor walks the rows of a unit by rising addresses.
type lineCursor struct {
	lines *lines
	seq   int // the sequence that covers the last address, or the first above it
	row   int // the row that counts there, -1 when there is none
}

// seek finds the row that covers an address.
func (l *lines) seek(addr uint64) lineCursor {
	k := sort.Search(len(l.sequences), func(k int) bool { return l.sequences[k].low > addr }) - 1
	if k < 0 || addr >= l.sequences[k].high {
		return lineCursor{l, k + 1, -1}
	}
	s := &l.sequences[k]
	n := sort.Search(s.last-s.first, func(n int) bool { return l.rows[s.first+n].Addr > addr }) - 1
	return lineCursor{l, k, s.first + max(n, 0)}
}

// next moves on to an address, at most the one that it returned last as until, and
// returns the row there, nil for none, and the address up to which that holds.
func (c *lineCursor) next(addr uint64) (row *dwarf.Row, until uint64) {
	l := c.lines
	for c.row >= 0 {
		if c.row+1 < l.sequences[c.seq].last && l.rows[c.row+1].Addr <= addr {
			c.row++
			continue
		}
		if until = l.rows[c.row+1].Addr; until > addr {
			return &l.rows[c.row], until
		}
		*c = lineCursor{l, c.seq + 1, -1} // past the end of the sequence
	}
	for ; c.seq < len(l.sequences); c.seq++ {
		s := &l.sequences[c.seq]
		if s.low > addr {
			return nil, s.low
		}
		if addr < s.high {
			*c = l.seek(addr)
			if c.row >= 0 {
				return c.next(addr)
			}
		}
	}
	return nil, ^uint64(0)
}
