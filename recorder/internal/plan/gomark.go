package plan

import "slices"

// In a Go program a marker is the entry of a function of package mark, see golang.MarkNotes: such a function does nothing, so it is no more than
// a return and the padding behind it. What it does besides, built without optimization, is moved with it. It is a marker, and no function
// that is recorded.

// placeGoMarks places the sites of the marks in function i: of the one at its entry.
func (p *planner) placeGoMarks(i int, marks []int) {
	entry := p.im.entryOf(&p.fns[i]).start
	for n, k := range marks {
		m := &p.im.Marked[k]
		switch {
		case m.Addr != entry:
			m.Alone.Refuse(ReasonOutside, m.Addr)
		case n > 0: // there is one entry
			m.Alone.Refuse(ReasonMarkedTwice, m.Addr)
		default:
			p.placeGoMark(i, m)
		}
	}
}

func (p *planner) placeGoMark(i int, m *Mark) {
	p.begin(i)
	if r := p.refuseEarly(); r.why != ReasonNone {
		m.Alone.Refuse(r.why, r.at)
		return
	}
	p.decode()
	if r := p.classify(); r.why != ReasonNone {
		m.Alone.Refuse(r.why, r.at)
		return
	}
	// Behind a check of the stack its arguments might be elsewhere; and from a frame there is no return that could be moved.
	if p.first != 0 || !p.frameless || p.hasLoop() {
		m.Alone.Refuse(ReasonMarkShort, m.Addr)
		return
	}
	w, why := p.grow(0, 0, p.spans[0], false)
	switch {
	case why != ReasonNone || w.space(p) < NearJump:
		m.Alone.Refuse(ReasonMarkShort, m.Addr)
		return
	case crossesPage(m.Addr, NearJump):
		m.Alone.Refuse(ReasonPage, m.Addr)
		return
	}
	site := p.displace(w, RoleMark)
	site.exits = 0 // they are only moved
	p.add(site, w.lo, w.hi)
	p.sites[0].Level = 1
	m.Alone.Tier, m.Alone.Reason, m.Alone.At = TierExitSite, ReasonNone, 0
	m.Alone.Sites = slices.Clone(p.sites)
	m.Alone.Size = uint64(site.Size)
}
