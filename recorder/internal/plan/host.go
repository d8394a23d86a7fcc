package plan

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// host finds a place for an island where there is no padding in reach: a second jump in a site of the same function that is
// there for this only. The bytes behind a site's first jump are not reached any more.
func (p *planner) host(s *Site) bool {
	from := s.Addr + ShortJump
	lo, hi := from-min(from, 128), from+127
	lo = max(lo, p.im.textAt(s.Addr).start+NearJump)
	if p.hostThere(s, lo, hi) {
		return true
	}
	for _, sp := range p.spans {
		for k := sp.from; k < sp.to; k++ {
			at := p.insts[k].addr
			if at+NearJump < lo {
				continue
			}
			if at+NearJump > hi {
				break
			}
			if at+2*NearJump > s.Addr && at < s.End() || crossesPage(at, NearJump) || crossesPage(at+NearJump, NearJump) {
				continue
			}
			if w, ok := p.plainRun(k, sp, s, 2*NearJump); ok {
				p.add(p.displace(w, RoleExit), w.lo, w.hi)
				p.sites[len(p.sites)-1].hosts = true
				s.Island, s.Hosted = at+NearJump, true
				return true
			}
		}
	}
	return p.hostAbroad(s, lo, hi)
}

// hostAbroad makes such a site in another function: that one is understood, so every way to its instructions is known. It runs a few
// of its instructions in the stub then, which changes nothing for it, whether it is traced or not: they can't fault.
func (p *planner) hostAbroad(s *Site, lo, hi uint64) bool {
	im, t := p.im, p.im.textAt(s.Addr)
	for i := im.pieceAfter(lo - NearJump); i < len(im.pieces) && im.pieces[i].start < min(hi, t.end); i++ {
		at := &im.pieces[i]
		c := &im.chunks[at.chunk]
		if !im.understood[c.owner] || at.start != c.start || at.end != c.end || im.inFunction(p.f, c.start) {
			continue
		}
		if w, ok := p.runAbroad(t, c, lo, hi); ok {
			w.hosts = true
			t.claim(w.Addr, w.End())
			p.sites = append(p.sites, w)
			s.Island, s.Hosted = w.Addr+NearJump, true
			return true
		}
	}
	return false
}

// runAbroad finds instructions of a chunk that have space for two jumps, the second between lo and hi, and no part in how control goes.
func (p *planner) runAbroad(t *text, c *chunk, lo, hi uint64) (Site, bool) {
	var in amd64.Inst
	w := Site{Kind: SiteDisplaced, Role: RoleExit}
	pc := max(c.start, lo-NearJump) // lo is that far into the text
	for pc < c.end && !t.starts.has(pc-t.start) {
		pc++
	}
	for ; pc < c.end && w.Size < 2*NearJump; pc += uint64(in.Len) {
		if !t.starts.has(pc - t.start) { // there is a table inside the function
			w.Size, w.Count, in.Len = 0, 0, 1
			continue
		}
		if !t.decode(&in, pc, c.end) {
			return w, false
		}
		one := inst{addr: pc, Inst: in}
		if in.Kind != amd64.Other || in.MayFault() || in.IsPadding() || !p.movable(&one) || p.isUsed(&one) || p.splits(&one) {
			w.Size, w.Count = 0, 0
			continue
		}
		if w.Size == 0 || p.isTarget(pc) {
			w.Addr, w.Size, w.Count = pc, 0, 0
		}
		if at := w.Addr + NearJump; w.Size == 0 && (at < lo || crossesPage(w.Addr, NearJump) || crossesPage(at, NearJump)) {
			continue
		} else if at > hi {
			return w, false
		}
		w.Size += in.Len
		w.Count++
	}
	return w, w.Size >= 2*NearJump
}

// hostThere takes the bytes behind the jump of a site that there is already, which may get larger for it.
func (p *planner) hostThere(s *Site, lo, hi uint64) bool {
	for i := range p.sites {
		w := &p.sites[i]
		at := w.Addr + NearJump
		if w.Kind != SiteDisplaced || w.Island != 0 || w.hosts || at < lo || at > hi || crossesPage(at, NearJump) || !p.enlarge(w, s) {
			continue
		}
		w.hosts = true
		s.Island, s.Hosted = at, true
		return true
	}
	return false
}

// enlarge lets a site take in what follows it, until two jumps fit. Nothing of site s may be among that.
func (p *planner) enlarge(w, s *Site) bool {
	if w.Size >= 2*NearJump {
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
		first, _ := p.indexOf(w.Addr)
		last := &p.insts[first+int(w.Count)-1]
		if k == sp.to || last.Ends() || last.end() != w.End() || p.isTarget(w.End()) {
			return false
		}
		more, ok := p.plainRun(k, sp, s, 2*NearJump-int(w.Size))
		if !ok || int(w.Count)+more.hi-more.lo > maxExtended {
			return false
		}
		size := int(w.Size) + more.size(p)
		last.displacedBy = 0
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

// indexOf is the index of the instruction at addr, if that is one of the function's.
func (p *planner) indexOf(addr uint64) (k int, own bool) {
	for _, sp := range p.spans {
		if sp.from < sp.to && addr >= p.insts[sp.from].addr && addr < sp.end {
			k, _ := slices.BinarySearchFunc(p.insts[sp.from:sp.to], addr, func(in inst, a uint64) int { return cmp.Compare(in.addr, a) })
			return sp.from + k, true
		}
	}
	return 0, false
}
