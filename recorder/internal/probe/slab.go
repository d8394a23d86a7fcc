package probe

// slab keeps the sites of many functions in few allocations.
type slab struct{ free []Site }

// keep returns a copy of the sites, nil for none.
func (s *slab) keep(sites []Site) []Site {
	const room = 1024
	n := len(sites)
	if n == 0 {
		return nil
	}
	if len(s.free) < n {
		s.free = make([]Site, max(room, n))
	}
	kept := s.free[:n:n]
	s.free = s.free[n:]
	copy(kept, sites)
	return kept
}
