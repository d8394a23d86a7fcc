package plan

import "github.com/callreel/callreel/recorder/internal/hugepage"

// slab keeps the sites of many functions in few allocations.
type slab struct {
	free  []Site
	batch int // of an allocation
}

// newSlab makes one of several for so many functions.
func newSlab(fns int) slab {
	const few, large = 1 << 15, 1 << 18
	if fns < few {
		return slab{batch: 1024}
	}
	return slab{batch: large}
}

// keep returns a copy of the sites, nil for none.
func (s *slab) keep(sites []Site) []Site {
	n := len(sites)
	if n == 0 {
		return nil
	}
	if len(s.free) < n {
		s.free = hugepage.Make[Site](max(s.batch, n))
	}
	kept := s.free[:n:n]
	s.free = s.free[n:]
	copy(kept, sites)
	return kept
}
