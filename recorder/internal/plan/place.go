package plan

import (
	"math"

	"github.com/callreel/callreel/isa/amd64"
)

// maxMoved bounds the instructions that one site displaces, and maxExtended those of one that a run was added to.
const (
	maxMoved    = 24
	maxExtended = 2 * maxMoved
)

// isTarget says whether control may come to addr other than from before it.
func (p *planner) isTarget(addr uint64) bool {
	t := p.im.textAt(addr)
	return t != nil && t.isTarget(addr)
}

// targetInside says whether control may come to a byte of [from, to) behind the first.
func (p *planner) targetInside(from, to uint64) bool {
	t := p.im.textAt(from)
	for a := from + 1; a < to && a < t.end; a++ {
		if t.isTarget(a) {
			return true
		}
	}
	return false
}

// movable says whether the instruction can run in the stub. Calls can't: their return address must be the true one. An endbr64 stays
// where it is, wherever in the function: something may come to it that indirect branch tracking watches, such as longjmp.
func (i *inst) movable() bool {
	switch i.Kind {
	case amd64.Call, amd64.IndirectCall, amd64.Syscall, amd64.FarBranch, amd64.XBegin, amd64.Breakpoint:
		return false
	}
	if i.IsEndbr64() {
		return false
	}
	// An address computed with 32 bits can't be moved with its RIP-relative operand.
	return !(i.RIPRelative && i.Prefixes&amd64.Addr67 != 0)
}

// entry places the entry site: the first whole instructions (behind endbr64, which indirect branch tracking wants
// first) that make space for a jump, or a direct call among them.
func (p *planner) entry() refusal {
	s := p.spans[0]
	k := p.first
	if p.insts[k].IsEndbr64() && k+1 < s.to {
		k++
	}
	start := p.insts[k].addr
	if p.insts[k].covered {
		return refusal{ReasonEntryShort, start}
	}
	// What is dead at the entry of a function in assembly need not be at a call.
	if call, at, ok := p.entryCall(k, s.to); ok && !p.im.entryOf(p.f).assembly {
		if p.hasLoop() {
			return refusal{ReasonLoop, start}
		}
		return p.add(call, at, at+1)
	}
	w, why := p.grow(k, k, s, false)
	if why == ReasonNone && w.space(p) >= NearJump && !crossesPage(start, NearJump) {
		return p.add(p.displace(w, RoleEntry), w.lo, w.hi)
	}
	if p.im.islands && w.size(p) >= ShortJump && !crossesPage(start, ShortJump) {
		if site := p.displace(w, RoleEntry); p.takeIsland(&site) {
			return p.add(site, w.lo, w.hi)
		}
	}
	// The site of a hook must do by itself.
	if p.im.islands && p.im.entryOf(p.f).hook == HookNone && w.size(p) >= ShortJump && !crossesPage(start, ShortJump) {
		if site := p.displace(w, RoleEntry); p.host(&site) {
			return p.add(site, w.lo, w.hi)
		}
	}
	if site, w, ok := p.beforeFrame(k, s); ok {
		return p.add(site, w.lo, w.hi)
	}
	if site, w, ok := p.atStackCheck(); ok {
		return p.add(site, w.lo, w.hi)
	}
	switch {
	case why != ReasonNone:
		return refusal{why, start}
	case w.space(p) < NearJump:
		return refusal{ReasonEntryShort, start}
	}
	return refusal{ReasonPage, start}
}

func (p *planner) hasLoop() bool {
	for i := range p.insts {
		if p.insts[i].role == roleLoop {
			return true
		}
	}
	return false
}

// entryCall finds a direct call within the first bytes that a jump would need. Changing where it leads costs nothing
// and leaves its return address the true one.
func (p *planner) entryCall(k, end int) (site Site, at int, ok bool) {
	pushed := int32(0)
	start := p.insts[k].addr
	for i := k; i < end && p.insts[i].addr-start < NearJump; i++ {
		in := &p.insts[i]
		if i > k && p.targetInside(p.insts[i-1].addr, in.addr+1) {
			return Site{}, 0, false
		}
		if in.covered {
			return Site{}, 0, false
		}
		if in.Kind == amd64.Call && in.RelSize == 4 {
			if crossesPage(in.addr+uint64(in.RelOff), 4) || p.targetInside(in.addr, in.end()) {
				return Site{}, 0, false
			}
			return Site{Kind: SiteBranch, Role: RoleEntry, Addr: in.addr, Size: in.Len, Count: 1, SPDelta: pushed + 8}, i, true
		}
		d, known := in.StackDelta()
		if in.Kind != amd64.Other || !known {
			return Site{}, 0, false
		}
		pushed -= int32(d)
	}
	return Site{}, 0, false
}

// run is what may be displaced: insts[lo:hi] and pad bytes of padding behind them.
type run struct {
	lo, hi int
	pad    int
}

func (w run) size(p *planner) int {
	if w.hi <= w.lo {
		return 0
	}
	return int(p.insts[w.hi-1].end() - p.insts[w.lo].addr)
}
func (w run) space(p *planner) int { return w.size(p) + w.pad }

// grow makes a run that holds insts[k] and at least five bytes, reaching back only down to insts[floor] and only if
// back is set, and forward within the span. Between instructions it takes over, control must come only from the one
// before. The reason says why it stopped with less.
func (p *planner) grow(k, floor int, s span, back bool) (run, Reason) {
	w := run{lo: k, hi: k}
	why := ReasonExitShort
	if !back {
		why = ReasonEntryShort
	}
	if !p.movable(&p.insts[k]) {
		return w, reasonFor(&p.insts[k])
	}
	w.hi = k + 1
	forward := func() bool {
		last := &p.insts[w.hi-1]
		if last.Ends() {
			w.pad = p.padding(last.end(), NearJump-w.size(p))
			return false
		}
		if w.hi >= s.to || w.hi-w.lo >= maxMoved {
			return false
		}
		next := &p.insts[w.hi]
		if p.targetInside(last.addr, next.addr+1) {
			if !back {
				why = ReasonEntryTarget
			}
			return false
		}
		if !p.movable(next) {
			if !back {
				why = reasonFor(next)
			}
			return false
		}
		if next.covered {
			return false
		}
		w.hi++
		return true
	}
	backward := func() bool {
		if !back || w.lo <= floor || w.hi-w.lo >= maxMoved {
			return false
		}
		prev := &p.insts[w.lo-1]
		if prev.Ends() || !p.movable(prev) || prev.covered || p.targetInside(prev.addr, p.insts[w.lo].addr+1) {
			return false
		}
		w.lo--
		return true
	}
	// What follows an exit that always leaves is padding at best, and free; else reach back before reaching on.
	if p.insts[k].Ends() {
		forward()
	}
	for w.space(p) < NearJump || crossesPage(p.insts[w.lo].addr, NearJump) {
		if backward() {
			w.pad = min(w.pad, max(0, NearJump-w.size(p)))
			continue
		}
		if w.space(p) >= NearJump || w.pad > 0 || !forward() {
			break
		}
	}
	if w.space(p) < NearJump && !p.insts[w.hi-1].Ends() {
		forward()
	}
	if p.targetInside(p.insts[w.lo].addr, p.insts[w.hi-1].end()) {
		return run{lo: k, hi: k}, why
	}
	if w.space(p) >= NearJump {
		return w, ReasonNone
	}
	return w, why
}

// reasonFor says why an instruction can't be moved.
func reasonFor(i *inst) Reason {
	if i.Kind == amd64.Call || i.Kind == amd64.IndirectCall {
		return ReasonCall
	}
	return ReasonInstruction
}

// padding counts the bytes of padding at addr, up to want, that nothing else needs.
func (p *planner) padding(addr uint64, want int) int {
	t := p.im.textAt(addr)
	n, limit := 0, uint64(0)
	for n < want && t != nil && addr < t.end {
		k := p.im.chunkAt(addr)
		if k >= 0 && !p.im.inFunction(p.f, addr) {
			break
		}
		if k < 0 && limit == 0 {
			limit = p.im.paddingEnd(t, addr)
		}
		in := &p.pad
		if amd64.DecodeTo(in, t.data[addr-t.start:]) != nil || !in.IsPadding() {
			break
		}
		for b := uint64(0); b < uint64(in.Len) && n < want; b++ {
			if k < 0 && addr+b >= limit || addr+b >= t.end || t.isTarget(addr+b) || t.isClaimed(addr+b) {
				return n
			}
			n++
		}
		addr += uint64(in.Len)
	}
	return n
}

// paddingEnd is where what may be padding ends behind code that ends at addr, where no function is. In front of the next function there may
// also be data, at a multiple of eight: the tables that GHC puts there, each of whose bytes the garbage collector reads, and which may begin
// as padding does. From there on nothing is padding unless all is.
func (im *Image) paddingEnd(t *text, addr uint64) uint64 {
	end := t.end
	if i := im.pieceAfter(addr); i < len(im.pieces) {
		end = min(end, im.pieces[i].start)
	}
	var in amd64.Inst
	for at := addr; at < min(end, addr+maxPadding); at += uint64(in.Len) {
		if !t.decode(&in, at, end) || !in.IsPadding() {
			return min((addr+7)&^7, end)
		}
	}
	return end
}

// displace makes the site of a run.
func (p *planner) displace(w run, role Role) Site {
	s := Site{Kind: SiteDisplaced, Role: role, Addr: p.insts[w.lo].addr, Size: uint8(w.space(p))}
	for i := w.lo; i < w.hi; i++ {
		s.take(&p.insts[i])
	}
	return s
}

// branch makes the site of a branch whose displacement is changed.
func (p *planner) branch(k int, role Role) Site {
	in := &p.insts[k]
	s := Site{Kind: SiteBranch, Role: role, Addr: in.addr, Size: in.Len}
	s.take(in)
	return s
}

// add takes a site over, with insts[lo:hi].
func (p *planner) add(s Site, lo, hi int) refusal {
	for i := lo; i < hi; i++ {
		p.insts[i].covered = true
	}
	p.im.textAt(s.Addr).claim(s.Addr, s.End())
	p.sites = append(p.sites, s)
	if last := &p.insts[hi-1]; s.Kind == SiteDisplaced && last.end() == s.End() {
		last.displacedBy = int32(len(p.sites))
	}
	return refusal{}
}

// unclaim gives back what add and takeIsland took.
func (p *planner) unclaim() {
	for i := range p.sites {
		s := &p.sites[i]
		t := p.im.textAt(s.Addr)
		t.unclaim(s.Addr, s.End())
		if s.Island != 0 && !s.Hosted {
			t.unclaim(s.Island, s.Island+NearJump)
		}
	}
}

// exits places a site for every exit, and for every jump back to the entry, that none covers yet: first those that
// need space, then the branches that have it in themselves.
func (p *planner) exits() refusal {
	for _, inPlace := range []bool{false, true} {
		for _, s := range p.spans {
			for k := s.from; k < s.to; k++ {
				in := &p.insts[k]
				if in.role == rolePlain || in.covered || p.inPlace(in) != inPlace {
					continue
				}
				if r := p.exit(k, s, inPlace); r.why != ReasonNone {
					return r
				}
			}
		}
	}
	return refusal{}
}

// inPlace says whether an exit is a branch whose displacement can be changed where it is.
func (p *planner) inPlace(in *inst) bool {
	return (in.Kind == amd64.Jump || in.Kind == amd64.CondJump) && in.RelSize == 4 &&
		!crossesPage(in.addr+uint64(in.RelOff), 4) && !p.targetInside(in.addr, in.end())
}

func (p *planner) exit(k int, s span, inPlace bool) refusal {
	in := &p.insts[k]
	role := RoleExit
	short := ReasonExitShort
	if in.role == roleLoop {
		role, short = RoleLoop, ReasonLoop
	}
	if inPlace {
		return p.add(p.branch(k, role), k, k+1)
	}
	w, why := p.grow(k, s.from, s, true)
	if why == ReasonNone && !crossesPage(p.insts[w.lo].addr, NearJump) {
		return p.add(p.displace(w, role), w.lo, w.hi)
	}
	if p.extend(w, s) {
		return refusal{}
	}
	if site, w, ok := p.behindFrame(k, s); ok {
		return p.add(site, w.lo, w.hi)
	}
	if p.im.islands && w.size(p) >= ShortJump && !crossesPage(p.insts[w.lo].addr, ShortJump) {
		if site := p.displace(w, role); p.takeIsland(&site) {
			return p.add(site, w.lo, w.hi)
		}
	}
	if p.im.again && p.absorb(k, s, role, maxRedirects) {
		return refusal{}
	}
	if p.im.islands && w.size(p) >= ShortJump && !crossesPage(p.insts[w.lo].addr, ShortJump) {
		if site := p.displace(w, role); p.host(&site) {
			return p.add(site, w.lo, w.hi)
		}
	}
	if why == ReasonNone {
		return refusal{ReasonPage, in.addr}
	}
	if why == ReasonInstruction {
		return refusal{why, in.addr}
	}
	return refusal{short, in.addr}
}

// extend lets a site that ends where the run begins take the run in, if control only comes to it from there.
func (p *planner) extend(w run, s span) bool {
	if w.hi <= w.lo || w.lo == s.from || p.isTarget(p.insts[w.lo].addr) || p.insts[w.lo-1].Ends() {
		return false
	}
	before := &p.insts[w.lo-1]
	if before.displacedBy == 0 {
		return false
	}
	site := &p.sites[before.displacedBy-1]
	size := int(site.Size) + w.size(p)
	if int(site.Count)+w.hi-w.lo > maxExtended || size > math.MaxUint8 {
		return false
	}
	for k := w.lo; k < w.hi; k++ {
		site.take(&p.insts[k])
		p.insts[k].covered = true
	}
	p.im.textAt(site.Addr).claim(site.End(), site.Addr+uint64(size))
	site.Size = uint8(size)
	p.insts[w.hi-1].displacedBy, before.displacedBy = before.displacedBy, 0
	return true
}

// maxPadding is how far behind a function an island may be: alignment is seldom more.
const maxPadding = 256

// takeIsland finds five bytes of padding between functions in reach of a two-byte jump at the site.
func (p *planner) takeIsland(s *Site) bool {
	im, t := p.im, p.im.textAt(s.Addr)
	from := s.Addr + ShortJump
	lo := max(t.start, from-min(from, 128))
	hi := from + 127
	// Each gap behind a piece is looked at, from the first that can reach lo.
	for i := im.pieceAfter(lo - min(lo, maxPadding)); i < len(im.pieces) && im.pieces[i].end <= hi; i++ {
		gap := span64{im.pieces[i].end, t.end}
		if i+1 < len(im.pieces) {
			gap.end = min(gap.end, im.pieces[i+1].start)
		}
		c := &im.chunks[im.pieces[i].chunk]
		if gap.start < t.start || gap.end < gap.start+NearJump || !c.closed || c.end != gap.start {
			continue
		}
		if a, ok := im.island(t, gap, lo, hi, s); ok {
			s.Island = a
			t.claim(a, a+NearJump)
			return true
		}
	}
	return false
}

// island finds five bytes from lo to hi in a gap behind code that doesn't fall through: padding that control never comes
// to and nothing else uses.
func (im *Image) island(t *text, gap span64, lo, hi uint64, s *Site) (uint64, bool) {
	free := gap.start // from here on nothing is claimed
	end := min(gap.end, gap.start+maxPadding, im.paddingEnd(t, gap.start))
	for at := gap.start; at < end; {
		in, err := amd64.Decode(t.data[at-t.start : gap.end-t.start])
		if err != nil || !in.IsPadding() {
			return 0, false
		}
		next := min(at+uint64(in.Len), end)
		for ; at < next; at++ {
			if t.isTarget(at) {
				return 0, false
			}
			if t.isClaimed(at) || at >= s.Addr && at < s.End() {
				free = at + 1
				continue
			}
			if at+1 < NearJump {
				continue
			}
			if a := at + 1 - NearJump; a >= free && a >= lo && a <= hi && !crossesPage(a, NearJump) {
				return a, true
			}
		}
	}
	return 0, false
}
