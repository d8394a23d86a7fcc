package plan

import (
	"cmp"
	"math"
	"slices"

	"github.com/callreel/callreel/isa/amd64"
)

// A marker is a place in a function's middle: an instruction, a nop as a rule, before which an event is due. Whole instructions around it are
// moved into a stub as they are at entries and exits. Registers, flags and what is below the stack pointer are alive there.
//
// A marker has a site of its own where its function isn't recorded. Where that is, the function's sites may need the same bytes: the marker's
// event is then written by the stub of the function's site.

// Mark is a marker's place, planned.
type Mark struct {
	// Addr is the link address of the instruction.
	Addr uint64
	// Alone is the marker as something to be probed by itself: a function with one site, or a reason why that can't be. Its Name is "".
	Alone Function
	// Host is the link address of the function that the instruction is in, 0 if none is known. With says what becomes of the marker where
	// that function is recorded.
	Host uint64
	With MarkWith
	// Return says that it is where a call by a slot returns to.
	Return bool

	fn int // index of the host in the order in which functions are planned, -1 for none
}

// MarkWith says what becomes of a marker where its function is recorded as well.
type MarkWith uint8

// What becomes of it.
const (
	MarkApart  MarkWith = iota // it has its own site
	MarkJoined                 // one of the function's sites has the instruction: its stub writes the event
	MarkLost                   // the function's sites are in the way
)

// Single says whether the site is written by one store, which threads meet as a whole: a nop of five bytes, or more, in one word of eight; on arm64 any.
func (m *Mark) Single() bool {
	if len(m.Alone.Sites) != 1 {
		return false
	}
	s := &m.Alone.Sites[0]
	return s.Kind == SiteWord || s.Count == 1 && s.Addr%8 <= 8-NearJump
}

// ReasonWith is why the marker can't be recorded where its function is.
func (m *Mark) ReasonWith() Reason {
	switch {
	case m.With == MarkJoined:
		return ReasonNone
	case m.With == MarkLost && m.Alone.Reason == ReasonNone:
		return ReasonMarkLost
	}
	return m.Alone.Reason
}

// findMarks says which functions the marks are in, and has the site of each placed, those of a function at a time.
func (im *Image) findMarks(fns []function, place func(fn int, marks []int)) {
	places := slices.Clone(im.Marks)
	for _, c := range im.calls {
		places = append(places, c.to)
	}
	im.Marked = make([]Mark, len(places))
	if len(places) == 0 {
		return
	}
	byOwner := map[int32]int{}
	for i := range fns {
		byOwner[im.entryOf(&fns[i]).owner] = i
	}
	im.marksOf = map[int][]int{}
	for i, addr := range places {
		m := &im.Marked[i]
		*m = Mark{Addr: addr, fn: -1, Return: i >= len(im.Marks), Alone: Function{Addr: addr, Reason: ReasonOutside, At: addr}}
		k := im.chunkAt(addr)
		if k < 0 {
			continue
		}
		// Chunks that overlap others are refused in any case.
		if fn, known := byOwner[im.chunks[k].owner]; known {
			m.fn, m.Host = fn, im.entryOf(&fns[fn]).start
			im.marksOf[fn] = append(im.marksOf[fn], i)
		}
	}
	for i := range fns { // in one order, as windows may be in each other's way
		if marks := im.marksOf[i]; len(marks) > 0 {
			place(i, marks)
		}
	}
}

// placeMarks places the sites of the marks in function i, which are as if the function had none of its own.
func (p *planner) placeMarks(i int, marks []int) {
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
		p.placeGoMarks(i, marks)
		return
	}
	p.begin(i)
	if r := p.refuseEarly(); r.why != ReasonNone {
		refuse(r.why, r.at)
		return
	}
	p.decode()
	if r := p.classify(); r.why != ReasonNone {
		refuse(r.why, r.at)
		return
	}
	p.marked = map[uint64]bool{}
	for _, k := range marks {
		p.marked[p.im.Marked[k].Addr] = true
	}
	slices.SortFunc(marks, func(a, b int) int { return cmp.Compare(p.im.Marked[a].Addr, p.im.Marked[b].Addr) })
	for n, k := range marks {
		m := &p.im.Marked[k]
		if n > 0 && p.im.Marked[marks[n-1]].Addr == m.Addr {
			m.Alone.Refuse(ReasonMarkedTwice, m.Addr)
			continue
		}
		p.placeMark(m)
	}
}

// maxMarkMoved bounds how many instructions on each side of the mark are moved with it.
const maxMarkMoved = 8

// placeMark places the site of one mark.
func (p *planner) placeMark(m *Mark) {
	p.sites = p.sites[:0]
	if k, own := p.indexOf(m.Addr); m.Return && (!own || !p.returnsTo(k, m.Addr)) {
		m.Alone.Refuse(ReasonEntryTarget, m.Addr)
		return
	}
	site, w, why := p.markSite(m)
	switch {
	case why == ReasonNone:
		p.add(site, w.lo, w.hi)
		p.sites[0].Level = 1
	case m.Return || !p.markOver(m.Addr): // what is led to a copy would end no call
		m.Alone.Refuse(why, m.Addr)
		return
	}
	for i := range p.sites {
		p.sites[i].exits = 0 // exits are the function's; alone they are only moved
	}
	m.Alone.Tier, m.Alone.Reason, m.Alone.At = TierExitSite, ReasonNone, 0
	m.Alone.Sites = slices.Clone(p.sites)
	m.Alone.Size = uint64(p.sites[0].Size)
}

// markOver makes the site of the mark at addr over instructions that jumps lead to, as of an exit: all of these jumps are led to the copies, which
// takes sites of their own.
func (p *planner) markOver(addr uint64) bool {
	k, own := p.indexOf(addr)
	if !own || k >= len(p.insts) || p.insts[k].addr != addr || p.insts[k].covered {
		return false
	}
	s := p.spans[slices.IndexFunc(p.spans, func(s span) bool { return k >= s.from && k < s.to })]
	w, ok := p.growOver(k, s)
	if !ok || !p.leadAll(SiteDisplaced, w, s, RoleMark, maxRedirects) {
		return false
	}
	p.sites[0].Before = uint8(k - w.lo)
	looped := slices.ContainsFunc(p.sites, func(s Site) bool { return s.loops != 0 })
	// What is led to the copies is told by the sites' own function, and not by a part of another's site.
	foreign := slices.ContainsFunc(p.sites, func(s Site) bool { return s.hosts || s.Hosted || s.Kind == SiteCopy })
	if looped || foreign || !p.levels() {
		p.undo(0)
		return false
	}
	return true
}

// markSite makes the site of the mark at addr: with a jump in its place, with a short one to an island, or, in front of a call, with that led to
// the stub, unless a call returns there.
func (p *planner) markSite(m *Mark) (site Site, w run, why Reason) {
	addr := m.Addr
	at, _ := p.indexOf(addr)
	if w, why = p.markWindow(addr, NearJump); why == ReasonNone {
		site = p.displace(w, RoleMark)
		site.Before = uint8(at - w.lo)
		return site, w, why
	}
	switch why {
	case ReasonMarkShort, ReasonPage, ReasonCall, ReasonInstruction:
	default:
		return site, w, why
	}
	if site, w, ok := p.markCall(at); ok && !m.Return {
		return site, w, ReasonNone
	}
	if short, no := p.markWindow(addr, ShortJump); no == ReasonNone {
		site = p.displace(short, RoleMark)
		site.Before = uint8(at - short.lo)
		if p.takeIsland(&site) {
			return site, short, ReasonNone
		}
	}
	return site, w, why
}

// markCall makes the site of a mark that is right in front of a direct call, to which control comes from nowhere else: where the call leads is
// changed. So the return address is pushed by then, and what the caller had below the stack pointer is over.
func (p *planner) markCall(k int) (Site, run, bool) {
	w := run{lo: k + 1, hi: k + 2}
	if k+1 >= len(p.insts) || !p.insts[k].IsNop() || p.insts[k].covered {
		return Site{}, w, false
	}
	in := &p.insts[k+1]
	if in.addr != p.insts[k].end() || in.covered || in.Kind != amd64.Call || in.RelSize != 4 || p.isTarget(in.addr) || p.splits(in) ||
		crossesPage(in.addr+uint64(in.RelOff), 4) {
		return Site{}, w, false
	}
	site := p.branch(k+1, RoleMark)
	site.SPDelta = 8
	return site, w, true
}

// markWindow finds the instructions that are moved for a mark: the nop alone if it has five bytes, else as few as can be, without exits if that
// can be. They have at least least bytes.
func (p *planner) markWindow(addr uint64, least int) (best run, why Reason) {
	k, own := p.indexOf(addr)
	if !own || k >= len(p.insts) || p.insts[k].addr != addr {
		return run{}, ReasonUndecodable
	}
	s := p.spans[slices.IndexFunc(p.spans, func(s span) bool { return k >= s.from && k < s.to })]
	if in := &p.insts[k]; in.covered {
		return run{}, ReasonMarkNear
	} else if !p.movable(in) || in.role == roleLoop {
		return run{}, reasonFor(in)
	}
	cost := 1 << 20
	why = ReasonMarkShort
	for lo := k; lo >= max(s.from, k-maxMarkMoved) && p.mayReach(lo, k); lo-- {
		for hi := k + 1; hi <= min(s.to, k+1+maxMarkMoved); hi++ {
			last := hi - 1
			if last > k && !p.mayReach(last-1, last) {
				why = cmp.Or(p.reasonBehind(last), why)
				break
			}
			w := run{lo: lo, hi: hi}
			if in := &p.insts[last]; in.Ends() && w.size(p) < least {
				w.pad = p.padding(in.end(), least-w.size(p))
			}
			if w.space(p) < least {
				continue
			}
			if crossesPage(p.insts[lo].addr, least) {
				if why == ReasonMarkShort {
					why = ReasonPage
				}
				continue
			}
			if p.targetInside(p.insts[lo].addr, p.insts[last].end()) {
				break // and so are all that reach further
			}
			if c := p.markCost(w, k); c < cost {
				best, cost = w, c
			}
			break
		}
	}
	if cost == 1<<20 {
		return run{}, why
	}
	return best, ReasonNone
}

// mayReach says whether the instructions from lo up to hi can be moved together: each leads to the next, and control comes to none from
// elsewhere but to the first.
func (p *planner) mayReach(lo, hi int) bool {
	for i := lo; i <= hi; i++ {
		in := &p.insts[i]
		if in.covered || in.role == roleLoop || !p.movable(in) || p.splits(in) {
			return false
		}
		if i > lo && p.isTarget(in.addr) || i < hi && in.Ends() {
			return false
		}
	}
	return true
}

// reasonBehind is why an instruction behind the mark can't be moved with it, if that is of its own making.
func (p *planner) reasonBehind(k int) Reason {
	switch in := &p.insts[k]; {
	case in.covered:
		return ReasonMarkNear
	case !p.movable(in):
		return reasonFor(in)
	}
	return ReasonNone
}

// markCost is how much speaks against a window of mark k.
func (p *planner) markCost(w run, k int) (cost int) {
	for i := w.lo; i < w.hi; i++ {
		in := &p.insts[i]
		switch {
		case i != k && p.marked[in.addr]:
			cost += 1000 // another marker would have none
		case in.role == roleExit:
			cost += 100 // it would have to be joined with the function's
		case in.Kind != amd64.Other:
			cost += 10 // jumps that lead elsewhere may have to be led to copies by the function
		}
		cost++
	}
	return cost
}

// hold keeps the function's sites away from the windows of marks. Those that can't be kept are left to joinMarks: with exits in them, which
// are the function's to write, or at the entry.
func (p *planner) hold(marks []int) {
	first := p.insts[p.first].addr
	for _, k := range marks {
		m := &p.im.Marked[k]
		m.With = MarkLost
		if len(m.Alone.Sites) == 0 {
			continue
		}
		lists := make([][]inst, 0, 1)
		for i := range m.Alone.Sites {
			site := &m.Alone.Sites[i]
			lo, own := p.indexOf(site.Addr)
			if !own {
				break
			}
			insts := p.insts[lo : lo+int(site.Count)]
			if site.Addr < first+2*NearJump && site.End() > first || slices.ContainsFunc(insts, func(i inst) bool { return i.role != rolePlain }) {
				break
			}
			lists = append(lists, insts)
		}
		if len(lists) < len(m.Alone.Sites) {
			continue
		}
		m.With = MarkApart
		for _, insts := range lists {
			for i := range insts {
				insts[i].covered = true
			}
		}
	}
}

// joinMarks says of the marks that weren't held what has become of them: a site of the function's has the instruction, or it can have its own
// all the same.
func (p *planner) joinMarks(marks []int) {
	for _, k := range marks {
		m := &p.im.Marked[k]
		if m.With == MarkApart {
			continue
		}
		switch {
		case p.isMoved(m.Addr), p.takeMark(m.Addr):
			m.With = MarkJoined
		case len(m.Alone.Sites) > 0 && !slices.ContainsFunc(m.Alone.Sites, func(s Site) bool { return !p.isFree(&s) }):
			m.With = MarkApart
		default:
			m.With = MarkLost
		}
	}
}

// takeMark lets the site that begins behind the mark, or soon behind it, take its instruction in, too, and those in between.
func (p *planner) takeMark(addr uint64) bool {
	k, own := p.indexOf(addr)
	if !own || crossesPage(addr, NearJump) {
		return false
	}
	for j := k + 1; j < min(len(p.insts), k+1+maxMarkMoved); j++ {
		before, at := &p.insts[j-1], p.insts[j].addr
		if before.end() != at || before.Ends() || before.role != rolePlain || !p.mayReach(k, j-1) || p.isTarget(at) {
			return false
		}
		for i := range p.sites {
			if s := &p.sites[i]; s.Addr == at && s.Kind != SiteCopy {
				return p.reachBack(s, k, j)
			}
		}
	}
	return false
}

// reachBack lets a site that begins with instruction j begin with instruction k instead, if nothing relies on where it is.
func (p *planner) reachBack(s *Site, k, j int) bool {
	size := int(s.Size) + int(p.insts[j].addr-p.insts[k].addr)
	if s.Kind != SiteDisplaced || s.Role != RoleExit || s.bound || s.hosts || s.Island != 0 || s.targets != 0 || s.swapped != 0 ||
		int(s.Count)+j-k > maxExtended || size > math.MaxUint8 {
		return false
	}
	s.Addr, s.Size, s.Count = p.insts[k].addr, uint8(size), s.Count+uint8(j-k)
	s.exits, s.loops = s.exits<<(j-k), s.loops<<(j-k)
	for i := k; i < j; i++ {
		p.insts[i].covered = true
	}
	p.im.textAt(s.Addr).claim(s.Addr, s.End())
	return true
}

// isFree says whether a mark's window has nothing that a site of the function has, nor an exit.
func (p *planner) isFree(site *Site) bool {
	lo, own := p.indexOf(site.Addr)
	if !own {
		return false
	}
	for i := lo; i < lo+int(site.Count); i++ {
		if in := &p.insts[i]; in.covered || in.role != rolePlain {
			return false
		}
		// A site that is a branch alone, or an island's host, is covered, too; what is led to a copy is none of these.
	}
	return true
}

// planAround plans function i, in which there are marks: around their windows, or with these in the function's own sites, whichever leaves
// more of the marks.
func (p *planner) planAround(i int, marks []int, out *Function) {
	if p.im.Go != nil {
		for _, k := range marks {
			p.im.Marked[k].With = MarkApart
		}
		out.Refuse(ReasonMarker, 0)
		return
	}
	const never = 1 << 30
	try := func(held bool) (lost int) {
		p.held = nil
		if held {
			p.held = marks
		}
		for _, k := range marks {
			p.im.Marked[k].With = MarkLost
		}
		p.giveWindows(marks, held)
		p.planOne(i, out)
		p.held = nil
		p.giveWindows(marks, true)
		if out.Tier == TierNone {
			return never
		}
		for _, k := range marks {
			lost += btoi(p.im.Marked[k].With == MarkLost)
		}
		return lost
	}
	// back takes back what was planned last.
	back := func() {
		if out.Tier != TierNone {
			p.unclaim()
			out.Refuse(ReasonNone, 0)
			p.giveWindows(marks, true)
		}
	}
	lost := try(true)
	if lost == 0 {
		return
	}
	back()
	if free := try(false); free > lost {
		back()
		free = try(true)
		lost = min(lost, free)
	} else {
		lost = free
	}
	if lost == never { // the function isn't recorded, whatever is chosen
		for _, k := range marks {
			p.im.Marked[k].With = MarkApart
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// giveWindows claims the windows of marks, or lets the function's sites have them.
func (p *planner) giveWindows(marks []int, claimed bool) {
	for _, k := range marks {
		for i := range p.im.Marked[k].Alone.Sites {
			s := &p.im.Marked[k].Alone.Sites[i]
			if t := p.im.textAt(s.Addr); claimed {
				t.claim(s.Addr, s.End())
			} else {
				t.unclaim(s.Addr, s.End())
			}
		}
	}
}
