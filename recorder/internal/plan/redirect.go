package plan

import (
	"math"
)

// Where jumps lead into what would be displaced, it can be all the same if every one of those jumps is led to the
// instruction's copy in the stub instead. That takes knowing them all: the instruction must be known for a target only by
// direct jumps of the same function's same part. Jumps that have 32 bits of displacement are led elsewhere where they are,
// others are displaced themselves.

// isTaken says whether control may come to addr other than from before it and by direct jumps of its own part.
func (p *planner) isTaken(addr uint64) bool {
	t := p.im.textAt(addr)
	return t != nil && t.taken.has(addr-t.start)
}

// maxRedirects is how many sites may each be there for the sake of the one before.
const maxRedirects = 8

// absorb displaces an exit that has no five bytes between the targets around it; or, where control comes to the exit
// by jumps alone, nothing is written but its copy.
func (p *planner) absorb(k int, s span, role Role, depth int) bool {
	if depth == 0 {
		return false
	}
	if p.join(k, s, depth) {
		return true
	}
	if w, ok := p.growOver(k, s); ok && p.leadAll(SiteDisplaced, w, s, role, depth) {
		return true
	}
	w, ok := p.jumpedTo(k, s)
	return ok && p.leadAll(SiteCopy, w, s, role, depth)
}

// join lets the site that ends before instruction k take that in.
func (p *planner) join(k int, s span, depth int) bool {
	in := &p.insts[k]
	if k == s.from || p.insts[k-1].displacedBy == 0 || p.insts[k-1].Ends() || !p.movable(in) || p.isTaken(in.addr) || p.splits(in) {
		return false
	}
	before := &p.insts[k-1]
	at := before.displacedBy - 1
	if site := &p.sites[at]; site.Count >= maxExtended || int(site.Size)+int(in.Len) > math.MaxUint8 {
		return false
	}
	mark := len(p.sites)
	in.covered = true // no other site is to take it
	if !p.redirect(k, s, depth-1) {
		in.covered = false
		p.undo(mark)
		return false
	}
	site := &p.sites[at]
	if p.isTarget(in.addr) {
		site.targets |= 1 << site.Count
	}
	site.take(in)
	site.Size += in.Len
	before.displacedBy, in.displacedBy = 0, at+1
	p.im.textAt(in.addr).claim(in.addr, in.end())
	return true
}

// leadAll places a site over a run, and leads all jumps into it to the copies.
func (p *planner) leadAll(kind SiteKind, w run, s span, role Role, depth int) bool {
	mark := len(p.sites)
	site := p.displace(w, role)
	site.Kind = kind
	p.add(site, w.lo, w.hi)
	first := w.lo
	if kind == SiteDisplaced {
		first++ // jumps to it meet the jump
	}
	for i := first; i < w.hi; i++ {
		if !p.isTarget(p.insts[i].addr) {
			continue
		}
		if !p.redirect(i, s, depth-1) {
			p.undo(mark)
			return false
		}
		p.sites[mark].targets |= 1 << (i - w.lo)
	}
	return true
}

// jumpedTo makes a run that ends with instruction k and that control comes to by jumps only.
func (p *planner) jumpedTo(k int, s span) (run, bool) {
	w := run{lo: k, hi: k + 1}
	for {
		in := &p.insts[w.lo]
		if !p.movable(in) || p.isUsed(in) || p.isTaken(in.addr) || p.splits(in) || w.lo == s.from || w.hi-w.lo > maxMoved {
			return w, false
		}
		if p.insts[w.lo-1].Ends() {
			return w, true
		}
		w.lo--
	}
}

// isUsed says whether a site has the instruction, or, of padding, a part of it.
func (p *planner) isUsed(in *inst) bool {
	if in.covered {
		return true
	}
	t := p.im.textAt(in.addr)
	for a := in.addr; a < in.end(); a++ {
		if t.isClaimed(a) {
			return true
		}
	}
	return false
}

// splits says whether control may come to the instruction's middle.
func (p *planner) splits(in *inst) bool { return p.targetInside(in.addr, in.end()) }

// growOver makes a run over instruction k that may have targets inside, as few as can be.
func (p *planner) growOver(k int, s span) (run, bool) {
	w := run{lo: k, hi: k + 1}
	if !p.movable(&p.insts[k]) {
		return w, false
	}
	// Targets that no instruction begins at can't be led anywhere.
	takes := func(i int) bool {
		in := &p.insts[i]
		return p.movable(in) && !p.isUsed(in) && !p.splits(in)
	}
	if !takes(k) {
		return w, false
	}
	for w.size(p) < NearJump || crossesPage(p.insts[w.lo].addr, NearJump) {
		if last := &p.insts[w.hi-1]; last.Ends() {
			w.pad = p.padding(last.end(), NearJump-w.size(p))
			if w.space(p) >= NearJump && !crossesPage(p.insts[w.lo].addr, NearJump) {
				return w, true
			}
			w.pad = 0
		}
		switch {
		case w.hi-w.lo >= maxMoved:
			return w, false
		case w.lo > s.from && takes(w.lo-1) && !p.insts[w.lo-1].Ends() && !p.isTaken(p.insts[w.lo].addr):
			w.lo--
		case w.hi < s.to && takes(w.hi) && !p.isTaken(p.insts[w.hi].addr):
			w.hi++
		default:
			return w, false
		}
	}
	return w, true
}

// redirect sees to it that every jump to instruction i is led to its copy.
func (p *planner) redirect(i int, s span, depth int) bool {
	for _, j := range p.jumpsTo(p.insts[i].addr) {
		k := j.k
		in := &p.insts[k]
		switch {
		case k < s.from || k >= s.to:
			return false
		case in.covered:
			if !p.isMoved(in.addr) {
				return false
			}
		case p.inPlace(in):
			p.add(p.branch(k, RoleExit), k, k+1)
		default:
			w, why := p.grow(k, s.from, s, true)
			if why == ReasonNone && w.space(p) >= NearJump && !crossesPage(p.insts[w.lo].addr, NearJump) {
				p.add(p.displace(w, RoleExit), w.lo, w.hi)
			} else if !p.absorb(k, s, RoleExit, depth) {
				return false
			}
		}
	}
	return true
}

// isMoved says whether the instruction at addr runs in a stub.
func (p *planner) isMoved(addr uint64) bool {
	for i := range p.sites {
		if s := &p.sites[i]; s.Kind != SiteBranch && addr >= s.Addr && addr < s.End() {
			return true
		}
	}
	return false
}

// undo takes back the sites from the one with that index on.
func (p *planner) undo(from int) {
	if from == len(p.sites) {
		return
	}
	for i := range p.insts {
		in := &p.insts[i]
		for k := from; in.covered && k < len(p.sites); k++ {
			if s := &p.sites[k]; in.addr >= s.Addr && in.addr < s.End() {
				in.covered = false
			}
		}
		if int(in.displacedBy) > from {
			in.displacedBy = 0
		}
	}
	all := p.sites
	p.sites = all[from:]
	p.unclaim()
	p.sites = all[:from]
}
