package plan

import (
	"math/bits"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// levels gives each site the level at which it may be written, so that text is right between any two writes: a recorder may be
// killed there. A site with targets inside comes after the sites that lead the jumps to its copies; a jump to a hosted
// island after the island, and that after the jump of the site that hosts it. It says whether there is such an order.
func (p *planner) levels() bool {
	needed := false
	for i := range p.sites {
		s := &p.sites[i]
		needed = needed || s.Hosted || s.targets != 0
	}
	if !needed {
		return true
	}
	p.siteOf = slices.Grow(p.siteOf[:0], len(p.insts))[:len(p.insts)]
	clear(p.siteOf)
	for i := range p.sites {
		from, own := p.indexOf(p.sites[i].Addr)
		if !own {
			continue // it is there to host, and nothing of this function's leads into it
		}
		for k := range int(p.sites[i].Count) {
			p.siteOf[from+k] = int32(i + 1)
		}
	}
	const visiting = 1 << 7
	bound := bindings{sites: p.sites}
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
			bound.add(i, k)
			return true
		}
		if s.Hosted && !after(p.hostOf(s), 2) {
			return false
		}
		if s.Kind != SiteDisplaced {
			s.Level = least
			return true
		}
		first, _ := p.indexOf(s.Addr)
		for targets := s.targets; targets != 0; targets &= targets - 1 {
			for _, j := range p.jumpsTo(p.insts[first+bits.TrailingZeros64(targets)].addr) {
				if source := p.siteOf[j.k]; source == 0 || !after(int(source)-1, 1) {
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
	bound.tell()
	return true
}

// bindings are which sites of a function rely on others of it.
type bindings struct {
	sites   []Site
	any     bool
	crosses bool // a page's end lies between two of them
}

// add notes that site i may be written only after site k.
func (b *bindings) add(i, k int) {
	s, to := &b.sites[i], &b.sites[k]
	s.bound, to.bound, b.any = true, true, true
	at, _ := s.Patch()
	other, _ := to.Patch()
	// What leads to a copy is not told here, but must be written before as well.
	b.crosses = b.crosses || !samePage(at, other) || to.Kind == SiteCopy || s.Hosted && !samePage(s.Island, other)
}

// tell notes of which sites the level matters: if a page's end is between any two of the sites that are bound to each other, of all that
// are bound, since they may be so by way of others. Pages are written whole, so among sites of one page there is no order.
func (b *bindings) tell() {
	if !b.any {
		return
	}
	for i := range b.sites {
		if s := &b.sites[i]; s.bound {
			b.crosses = b.crosses || s.islandApart()
		}
	}
	for i := range b.sites {
		s := &b.sites[i]
		s.apart = s.bound && b.crosses
	}
}

// samePage says whether two link addresses are on one page; their load addresses are then, too.
func samePage(a, b uint64) bool { return a/amd64.PageSize == b/amd64.PageSize }

// hostOf is the index of the site that hosts a site's island.
func (p *planner) hostOf(s *Site) int {
	return slices.IndexFunc(p.sites, func(h Site) bool { return h.Kind == SiteDisplaced && h.Addr == s.Island-NearJump })
}
