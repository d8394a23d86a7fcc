package plan

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/isa/arm64"
)

// wordPlanner plans one function of arm64 at a time.
type wordPlanner struct {
	walker
	fns   []function
	f     *function
	sites []Site
	slab  slab
}

func newWordPlanner(im *Image, fns []function) *wordPlanner {
	return &wordPlanner{fns: fns, slab: newSlab(len(fns)), walker: walker{im: im, frames: frameRows{im: im}}}
}

// plan fills in the tier of function i, or why it has none.
func (p *wordPlanner) plan(i int, out *Function) {
	p.f, p.sites = &p.fns[i], p.sites[:0]
	if marks := p.im.marksOf[i]; p.im.Go != nil && len(marks) > 0 {
		for _, k := range marks {
			p.im.Marked[k].With = MarkApart
		}
		out.Refuse(ReasonMarker, 0)
		return
	}
	if r := p.run(); r.why != ReasonNone {
		out.Reason, out.At = r.why, r.at
		p.hook(i, out)
		return
	}
	out.Tier = TierExitSite
	out.Sites = p.slab.keep(p.sites)
	p.joinMarks(i)
}

// hook places the entry site of function i, which has no tier, for a look at its arguments, if it has a hook; none when that can't be done
// either, or when a marker is there.
func (p *wordPlanner) hook(i int, out *Function) {
	if out.Hook == HookNone {
		return
	}
	p.f, p.sites = &p.fns[i], p.sites[:0]
	at, why := p.hookEntry(out.Hook == HookLoader)
	if why != ReasonNone {
		return
	}
	p.liveness()
	site := p.entrySite(at)
	for _, k := range p.im.marksOf[i] {
		if p.im.Marked[k].Addr == site.Addr {
			return
		}
	}
	if out.more == nil {
		out.more = &more{}
	}
	out.more.hookSite = []Site{site}
}

// hookEntry walks through a function that isn't recorded, and says at which of its words an event may be. What a loader calls for debuggers is
// called by nobody else, and does nothing.
func (p *wordPlanner) hookEntry(ofLoader bool) (at int, why Reason) {
	if !ofLoader {
		at, r := p.enter()
		return at, r.why
	}
	if !p.decode() {
		return 0, ReasonUndecodable
	}
	p.walk()
	return p.entry()
}

func (p *wordPlanner) run() refusal {
	at, r := p.enter()
	if r.why != ReasonNone {
		return r
	}
	return p.place(at)
}

// enter walks through the function, and says at which of its words the entry's event may be, or what speaks against one.
func (p *wordPlanner) enter() (at int, r refusal) {
	if g := p.im.Go; g != nil && g.Unsupported != nil {
		return 0, refusal{GoReason(g), 0}
	}
	if r := p.refuseEarly(); r.why != ReasonNone {
		return 0, r
	}
	if !p.decode() {
		return 0, refusal{ReasonUndecodable, p.im.entryOf(p.f).start}
	}
	p.walk()
	if r := p.enterable(); r.why != ReasonNone {
		return 0, r
	}
	at, _ = p.entry()
	if p.words[at].Kind == arm64.Call && p.hasLoop() {
		return 0, refusal{ReasonLoop, p.words[at].addr} // the return address of a call from elsewhere wouldn't be the true one
	}
	return at, refusal{}
}

// enterable finds what speaks against an event at the entry of the function, which has been walked through.
func (p *wordPlanner) enterable() refusal {
	if p.badAt != 0 {
		return refusal{ReasonUndecodable, p.badAt}
	}
	if p.lost != 0 {
		return refusal{ReasonJump, p.lost}
	}
	if _, why := p.entry(); why != ReasonNone {
		return refusal{why, p.words[0].addr}
	}
	return p.classify()
}

func (p *wordPlanner) hasLoop() bool {
	return slices.ContainsFunc(p.words, func(w codeWord) bool { return w.role == roleLoop })
}

// refuseEarly finds what speaks against the function as a whole.
func (p *wordPlanner) refuseEarly() refusal {
	switch {
	case p.f.why != ReasonNone:
		return refusal{p.f.why, 0}
	case p.im.Loader:
		return refusal{ReasonLoader, 0}
	}
	size := uint64(0)
	for _, i := range p.im.partsOf(p.f) {
		c := &p.im.chunks[i]
		size += c.end - c.start
		switch {
		case size > maxFunction:
			return refusal{ReasonLarge, c.start}
		case c.linkage:
			return refusal{ReasonLinkage, 0}
		case c.assembly && !c.plain:
			return refusal{ReasonAssembly, 0}
		case c.overlap:
			return refusal{ReasonOverlap, c.start}
		case c.end < c.start+arm64.Len:
			return refusal{ReasonEntryShort, c.start}
		case c.isSignalReturnARM64(p.im):
			return refusal{ReasonSignalReturn, c.start}
		case c.cancels:
			return refusal{ReasonCancellation, c.start}
		case !p.im.reachable(c.start, c.end):
			return refusal{ReasonReach, c.start}
		}
	}
	return refusal{}
}

// branchReach is how far a branch reaches (Arm ARM C6.2, B), less what the arena itself takes.
const branchReach = 128<<20 - 16<<20

// reachable says whether an arena beside the image can be near enough to code from start up to end.
func (im *Image) reachable(start, end uint64) bool {
	if len(im.loads) == 0 {
		return false
	}
	lo, hi := im.loads[0].Start, im.loads[len(im.loads)-1].End
	return end-lo < branchReach || hi-start < branchReach
}

// decode gathers the words of all parts.
func (p *wordPlanner) decode() bool {
	p.begin()
	p.own = func(addr uint64) bool { return p.im.inFunction(p.f, addr) }
	for _, i := range p.im.partsOf(p.f) {
		c := &p.im.chunks[i]
		if !p.add(c.start, c.end) {
			return false
		}
	}
	return true
}

// maxPads is how many of those there are at most: bti and a signature.
const maxPads = 2

// maxBefore is how many instructions may run before the entry's event.
const maxBefore = 8

// entry chooses the entry site: the first instruction behind what has to be where indirect calls arrive, or a later one if that can't be moved and
// nothing has happened by then. The reason says why there is none.
func (p *wordPlanner) entry() (at int, why Reason) {
	if p.im.Go != nil {
		return p.goEntry()
	}
	s := p.spans[0]
	k := s.from
	for k+1 < s.to && k < s.from+maxPads && p.words[k].known && p.words[k].IsLandingPad() && p.words[k].Kind == arm64.Other {
		k++
	}
	for n := 0; ; n, k = n+1, k+1 {
		in := &p.words[k]
		if !in.known {
			return k, ReasonUndecodable
		}
		if in.displaceable() || in.Kind == arm64.Call {
			return k, ReasonNone
		}
		if why == ReasonNone {
			why = ReasonInstruction
			if in.Kind == arm64.IndirectCall {
				why = ReasonCall
			}
		}
		_, known := in.StackDelta()
		if in.Kind != arm64.Other || !known || n == maxBefore || k+1 == s.to || p.isTarget(k+1) {
			return k, why
		}
	}
}

// isTarget says whether control may come to words[k] other than from before it.
func (p *wordPlanner) isTarget(k int) bool {
	t := p.im.textAt(p.words[k].addr)
	return t.isTarget(p.words[k].addr)
}

// displaceable says whether the instruction can run in a stub. Those that name an address relative to their own are made anew there. Calls can't:
// their return address must be the true one; nor can system calls, during which the PC is seen, the steps of a copy, among which the kernel may
// go back (FEAT_MOPS), signatures of the place, and landing pads, which have to be where they are.
func (w *codeWord) displaceable() bool {
	switch w.Kind {
	case arm64.Call, arm64.IndirectCall, arm64.Syscall, arm64.ExceptionReturn:
		return false
	}
	switch w.Class {
	case arm64.SignPC, arm64.BranchAuthPC, arm64.MemoryCopy, arm64.LandingPad:
		return false
	}
	return true
}

// classify finds the exits and the jumps back to the entry.
func (p *wordPlanner) classify() refusal {
	s := p.spans[0]
	at, _ := p.entry()
	first, entry := p.words[s.from].addr, p.words[at].addr
	if p.im.Go != nil {
		first = entry // what goes back to the check of the stack enters once more
	}
	for k := range p.words {
		in := &p.words[k]
		if !in.reached || in.role == roleDetour {
			continue
		}
		switch in.Kind {
		case arm64.Return:
			if !p.installs(k) {
				in.role = roleExit
			}
		case arm64.Jump, arm64.CondJump:
			to, _ := in.Target(in.addr)
			switch {
			case to >= first && to <= entry:
				in.role = roleLoop
			case !p.im.inFunction(p.f, to):
				in.role = roleExit
			}
		case arm64.IndirectJump:
			if p.leaving[k] && !p.installs(k) {
				in.role = roleExit
			}
		}
		if (in.role == roleExit || in.role == roleLoop) && !in.displaceable() {
			return refusal{ReasonInstruction, in.addr}
		}
	}
	for _, s := range p.spans {
		if r := p.closes(s); r.why != ReasonNone {
			return r
		}
	}
	if p.im.Go != nil {
		return p.closesGo()
	}
	return refusal{}
}

// installs says whether words[k] leaves for a landing pad, with that one's stack pointer, as unwinders do by __builtin_eh_return: GCC adds x4
// to SP right before (large frames are taken away by x12, and in Go by x27). Such a call ends as those do that it unwinds, when something
// further up is seen. By its stack pointer its end would be nobody's.
func (p *wordPlanner) installs(k int) bool {
	const addSPSPX4 = 0x8B2463FF // Arm ARM C6.2.4
	return k > 0 && p.words[k-1].addr+arm64.Len == p.words[k].addr && p.words[k-1].Word == addSPSPX4
}

// closes refuses a function whose code runs into another's, and one with code that nothing is known to lead to and that leaves: it may be reached in
// some unknown way. Without an exit nothing is missed in it, words that aren't instructions make it data, and what no instruction and no data names
// is reached by nobody: compilers and assembly leave such code behind.
func (p *wordPlanner) closes(s span) refusal {
	if last := &p.words[s.to-1]; p.runsOut(s) {
		if k := p.im.chunkAt(s.end); k >= 0 && p.im.chunks[k].start == s.end && !p.im.inFunction(p.f, s.end) {
			return refusal{ReasonShared, last.addr}
		}
	}
	for k := s.from; k < s.to; {
		if p.words[k].reached {
			k++
			continue
		}
		exit, data, named := uint64(0), false, p.guessed
		t := p.im.textAt(p.words[k].addr)
		for ; k < s.to && !p.words[k].reached; k++ {
			in := &p.words[k]
			named = named || t.isClaimed(in.addr)
			if !in.known || in.Kind == arm64.Undefined {
				data = true
				continue
			}
			switch in.Kind {
			case arm64.Return, arm64.IndirectJump:
				exit = cmp.Or(exit, in.addr)
			case arm64.Jump, arm64.CondJump:
				if to, _ := in.Target(in.addr); !p.im.inFunction(p.f, to) {
					exit = cmp.Or(exit, in.addr)
				}
			}
		}
		if exit != 0 && !data && named {
			return refusal{ReasonJump, exit}
		}
	}
	return refusal{}
}

// runsOut says whether control may go on behind the last word of a span. Behind a call it doesn't, which compilers only put there if it never
// returns, nor behind registers' saves that follow one: what is left of a frame's making.
func (p *wordPlanner) runsOut(s span) bool {
	for k := s.to - 1; k >= s.from; k-- {
		in := &p.words[k]
		saves := (in.Class == arm64.Store || in.Class == arm64.StorePair) && !in.Writeback && (in.Base == arm64.SP || in.Base == arm64.FP)
		switch {
		case !in.reached || in.Ends() && in.role != roleDetour || in.calls():
			return false
		case !saves && !in.IsNop() || p.isTarget(k):
			return !in.IsNop() || k != s.to-1
		}
	}
	return true
}

// place makes the sites.
func (p *wordPlanner) place(at int) refusal {
	p.liveness()
	p.sites = append(p.sites, p.entrySite(at))
	for k := range p.words {
		if in := &p.words[k]; k != at && (in.role == roleExit || in.role == roleLoop) {
			p.sites = append(p.sites, p.site(k))
		}
	}
	return refusal{}
}

// entrySite makes the site of the entry's event, which is due before words[at].
func (p *wordPlanner) entrySite(at int) Site {
	s := p.site(at)
	s.Role = RoleEntry
	for k := range p.words[:at] {
		delta, _ := p.words[k].StackDelta()
		s.SPDelta -= int32(delta)
	}
	return s
}

// site makes the site of words[k].
func (p *wordPlanner) site(k int) Site {
	in := &p.words[k]
	s := Site{Kind: SiteWord, Role: RoleExit, Addr: in.addr, Size: arm64.Len, Level: 1, Count: 1}
	if in.Kind == arm64.Jump || in.Kind == arm64.Call {
		s.Kind = SiteBranch
	}
	switch in.role {
	case roleExit:
		s.exits = 1
	case roleLoop:
		s.loops, s.Role = 1, RoleLoop
	}
	if in.live&liveX16 == 0 {
		s.loops |= freeX16
	}
	if in.live&liveX17 == 0 {
		s.loops |= freeX17
	}
	return s
}
