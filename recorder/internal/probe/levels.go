package probe

// levels gives each site the level at which it may be written, so that text is right between any two writes: a recorder may be
// killed there. A window with targets inside comes after the sites that lead the jumps to its copies; a jump to a hosted
// island after the island, and that after the jump of the window that hosts it. It says whether there is such an order.
func (p *planner) levels() bool {
	needed := false
	for i := range p.sites {
		s := &p.sites[i]
		needed = needed || s.Hosted
		for k := range s.Moved {
			needed = needed || s.Moved[k].Target
		}
	}
	if !needed {
		return true
	}
	at := map[uint64]int{} // sites by their instructions
	for i := range p.sites {
		for k := range p.sites[i].Moved {
			at[p.sites[i].Moved[k].Addr] = i
		}
	}
	const visiting = 1 << 7
	var level func(i int) bool
	level = func(i int) bool {
		s := &p.sites[i]
		if s.Level != 0 {
			return s.Level != visiting
		}
		s.Level = visiting
		least := uint8(1)
		after := func(k int, steps uint8) bool {
			if k == i {
				return true
			}
			if !level(k) || p.sites[k].Level+steps >= visiting {
				return false
			}
			least = max(least, p.sites[k].Level+steps)
			return true
		}
		if s.Hosted && !after(at[p.hostOf(s)], 2) {
			return false
		}
		for k := range s.Moved {
			m := &s.Moved[k]
			if !m.Target || s.Kind != SiteWindow {
				continue
			}
			for _, j := range p.jumpsTo(m.Addr) {
				source, ok := at[p.insts[j].addr]
				if !ok || !after(source, 1) {
					return false
				}
			}
		}
		s.Level = least
		return true
	}
	for i := range p.sites {
		if !level(i) {
			return false
		}
	}
	return true
}

// hostOf is the address of the window that hosts a site's island.
func (p *planner) hostOf(s *Site) uint64 { return s.Island - nearJump }
