package probe

import (
	"cmp"
	"slices"
)

// host finds a place for an island where there is no padding in reach: a second jump in a window of the same function that is
// there for this only. The bytes behind a window's first jump are not reached any more.
func (p *planner) host(s *Site) bool {
	from := s.Addr + shortJump
	lo, hi := from-min(from, 128), from+127
	if p.hostThere(s, lo, hi) {
		return true
	}
	for _, sp := range p.spans {
		for k := sp.from; k < sp.to; k++ {
			at := p.insts[k].addr
			if at+nearJump < lo {
				continue
			}
			if at+nearJump > hi {
				break
			}
			if at+2*nearJump > s.Addr && at < s.End() || crossesPage(at, nearJump) || crossesPage(at+nearJump, nearJump) {
				continue
			}
			if w, ok := p.plainRun(k, sp, s, 2*nearJump); ok {
				p.add(p.window(w, RoleExit), w.lo, w.hi)
				p.sites[len(p.sites)-1].hosts = true
				s.Island, s.Hosted = at+nearJump, true
				return true
			}
		}
	}
	return false
}

// hostThere takes room behind the jump of a window that there is already, which may get larger for it.
func (p *planner) hostThere(s *Site, lo, hi uint64) bool {
	for i := range p.sites {
		w := &p.sites[i]
		at := w.Addr + nearJump
		if w.Kind != SiteWindow || w.Island != 0 || w.hosts || at < lo || at > hi || crossesPage(at, nearJump) || !p.enlarge(w, s) {
			continue
		}
		w.hosts = true
		s.Island, s.Hosted = at, true
		return true
	}
	return false
}

// enlarge lets a window take in what follows it, until there is room for two jumps. Nothing of site s may be among that.
func (p *planner) enlarge(w, s *Site) bool {
	if w.Size >= 2*nearJump {
		return true
	}
	for _, sp := range p.spans {
		if w.Addr < p.insts[sp.from].addr || w.Addr >= sp.end {
			continue
		}
		k := sp.from
		for k < sp.to && p.insts[k].addr < w.End() {
			k++
		}
		last := &p.insts[p.indexOf(w.Addr)+int(w.Count)-1]
		if k == sp.to || last.Ends() || last.end() != w.End() || p.isTarget(w.End()) {
			return false
		}
		more, ok := p.plainRun(k, sp, s, 2*nearJump-int(w.Size))
		if !ok || int(w.Count)+more.hi-more.lo > maxExtended {
			return false
		}
		size := int(w.Size) + more.size(p)
		last.window = 0
		for i := more.lo; i < more.hi; i++ {
			w.take(&p.insts[i])
			p.insts[i].covered = true
		}
		p.im.textAt(w.Addr).claim(w.End(), w.Addr+uint64(size))
		w.Size = uint8(size)
		return true
	}
	return false
}

// plainRun makes a run of that many bytes from instruction k on that holds nothing of a site's: there are no exits in it.
func (p *planner) plainRun(k int, sp span, s *Site, size int) (run, bool) {
	w := run{lo: k, hi: k}
	for w.size(p) < size {
		if w.hi >= sp.to || w.hi-w.lo >= maxMoved {
			return w, false
		}
		in := &p.insts[w.hi]
		inside := in.addr >= s.Addr && in.addr < s.End()
		if inside || p.isUsed(in) || !p.movable(in) || in.role != rolePlain || in.Ends() || p.splits(in) || w.hi > w.lo && p.isTarget(in.addr) {
			return w, false
		}
		w.hi++
	}
	return w, true
}

// indexOf is the index of the instruction at addr, which there is.
func (p *planner) indexOf(addr uint64) int {
	for _, sp := range p.spans {
		if sp.from < sp.to && addr >= p.insts[sp.from].addr && addr < sp.end {
			k, _ := slices.BinarySearchFunc(p.insts[sp.from:sp.to], addr, func(in inst, a uint64) int { return cmp.Compare(in.addr, a) })
			return sp.from + k
		}
	}
	return 0
}
