package plan

import "slices"

// A mark on arm64 is one instruction, as every site. So marks aren't in each other's way, and what the function's own sites have is joined by them.

// placeMarks places the sites of the marks in function i, which are as if the function had none of its own.
func (p *wordPlanner) placeMarks(i int, marks []int) {
	p.f, p.sites = &p.fns[i], p.sites[:0]
	refuse := func(why Reason, at uint64) {
		for _, k := range marks {
			p.im.Marked[k].Alone.Refuse(why, at)
		}
	}
	if g := p.im.Go; g != nil {
		if g.Unsupported != nil {
			refuse(GoReason(g), 0)
			return
		}
		p.placeGoMarks(marks)
		return
	}
	if r := p.refuseEarly(); r.why != ReasonNone {
		refuse(r.why, r.at)
		return
	}
	if !p.decode() {
		refuse(ReasonUndecodable, p.im.entryOf(p.f).start)
		return
	}
	p.walk()
	p.classify() // roles of exits, which tell what a moved instruction does; what it refuses is the function's
	p.liveness()
	taken := map[uint64]bool{}
	for _, n := range marks {
		m := &p.im.Marked[n]
		k := p.indexOf(m.Addr)
		switch {
		case k < 0 || !p.words[k].known || !p.words[k].reached:
			m.Alone.Refuse(ReasonUndecodable, m.Addr)
		case taken[m.Addr]:
			m.Alone.Refuse(ReasonMarkedTwice, m.Addr)
		case m.Return && !p.returnsTo(k):
			m.Alone.Refuse(ReasonEntryTarget, m.Addr)
		case !p.words[k].displaceable() || p.words[k].role == roleLoop || p.words[k].role == roleDetour:
			m.Alone.Refuse(ReasonInstruction, m.Addr)
		default:
			taken[m.Addr] = true
			site := p.site(k)
			site.Role, site.exits = RoleMark, 0 // exits are the function's; alone they are only moved
			m.Alone.Tier, m.Alone.Reason, m.Alone.At = TierExitSite, ReasonNone, 0
			m.Alone.Sites, m.Alone.Size = []Site{site}, uint64(site.Size)
		}
	}
}

// returnsTo says whether words[k] is where a call returns to, and nothing else comes.
func (p *wordPlanner) returnsTo(k int) bool {
	return k > 0 && p.words[k-1].end() == p.words[k].addr && p.words[k-1].reached && p.words[k-1].calls() && !p.isTarget(k)
}

// joinMarks says of the marks in function i, which is traced, what becomes of them.
func (p *wordPlanner) joinMarks(i int) {
	for _, n := range p.im.marksOf[i] {
		m := &p.im.Marked[n]
		m.With = MarkApart
		if slices.ContainsFunc(p.sites, func(s Site) bool { return s.Addr == m.Addr }) {
			m.With = MarkJoined
		}
	}
}

// placeGoMarks places the sites of the marks in a function of a Go program: of the one at its entry, see gomark.go.
func (p *wordPlanner) placeGoMarks(marks []int) {
	entry, placed := p.im.entryOf(p.f).start, false
	for _, k := range marks {
		m := &p.im.Marked[k]
		switch {
		case m.Addr != entry:
			m.Alone.Refuse(ReasonOutside, m.Addr)
		case placed: // there is one entry
			m.Alone.Refuse(ReasonMarkedTwice, m.Addr)
		default:
			placed = true
			p.placeGoMark(m)
		}
	}
}

func (p *wordPlanner) placeGoMark(m *Mark) {
	r := p.refuseEarly()
	if r.why == ReasonNone && !p.decode() {
		r = refusal{ReasonUndecodable, m.Addr}
	}
	if r.why == ReasonNone {
		p.walk()
		r = p.enterable()
	}
	if r.why != ReasonNone {
		m.Alone.Refuse(r.why, r.at)
		return
	}
	at, _ := p.entry()
	if p.words[at].addr != m.Addr || p.hasLoop() { // the marker would be passed once more by those that have made the stack larger, or that go round
		m.Alone.Refuse(ReasonMarkShort, m.Addr)
		return
	}
	p.liveness()
	site := p.site(at)
	site.Role, site.exits = RoleMark, 0 // they are only moved
	m.Alone.Tier, m.Alone.Reason, m.Alone.At = TierExitSite, ReasonNone, 0
	m.Alone.Sites, m.Alone.Size = []Site{site}, uint64(site.Size)
}
