package plan

import "github.com/callreel/callreel/isa/amd64"

// In a Go function with a frame no instruction that may fault can run in the arena, see golang.MayPanic: where a nil pointer is looked through,
// the runtime would find neither Go code at the PC nor a return address on top of the stack. But what makes and drops the frame needs
// nothing of such an instruction, and the other way round. So at an entry it runs before the frame is made, and at a return behind
// the frame's end. A panic there is the caller's, as that of a call of a nil function is.

// beforeFrame makes the entry's site of a function that begins by making its frame and then looks through a pointer.
func (p *planner) beforeFrame(k int, s span) (Site, run, bool) {
	w := run{lo: k, hi: k + 3}
	if p.im.Go == nil || k != 0 || w.hi > s.to || !isPushRBP(&p.insts[k]) || !isFrameStart(&p.insts[k+1]) || !p.swappable(&p.insts[k+2]) {
		return Site{}, w, false
	}
	if !p.canTake(w) {
		return Site{}, w, false
	}
	site := p.displace(w, RoleEntry)
	site.swapped, site.swappedTo = 3, 0
	return site, w, true
}

// behindFrame makes the site of a return before which the frame is dropped and, before that, a pointer looked through.
func (p *planner) behindFrame(k int, s span) (Site, run, bool) {
	w := run{lo: k - 2, hi: k + 1}
	if p.im.Go == nil || w.lo < s.from || p.insts[k].Kind != amd64.Return || !isPopRBP(&p.insts[k-1]) || !p.swappable(&p.insts[w.lo]) {
		return Site{}, w, false
	}
	for w.size(p) < NearJump {
		if w.lo == s.from || p.insts[w.lo-1].Ends() || !p.movable(&p.insts[w.lo-1]) {
			return Site{}, w, false
		}
		w.lo--
	}
	if !p.canTake(w) {
		return Site{}, w, false
	}
	site := p.displace(w, RoleExit)
	site.swapped, site.swappedTo = uint8(k-2-w.lo)+1, uint8(k-1-w.lo)
	return site, w, true
}

// atStackCheck makes the entry's site of the check whether the stack is large enough; the event comes behind it.
func (p *planner) atStackCheck() (Site, run, bool) {
	w := run{lo: 0, hi: p.first}
	if p.im.Go == nil || p.first == 0 || !p.canTake(w) || w.size(p) < NearJump {
		return Site{}, w, false
	}
	site := p.displace(w, RoleEntry)
	site.Before = site.Count
	return site, w, true
}

// canTake says whether a run can be displaced: nothing has any of it, control comes only to its start.
func (p *planner) canTake(w run) bool {
	for i := w.lo; i < w.hi; i++ {
		if p.isUsed(&p.insts[i]) || p.insts[i].role == roleLoop {
			return false
		}
	}
	last := &p.insts[w.hi-1]
	// Where the way back leads must be no instruction's middle, nor the entry's, of which an event was written.
	return !crossesPage(p.insts[w.lo].addr, NearJump) && !p.targetInside(p.insts[w.lo].addr, last.end())
}

// swappable says whether an instruction can change places with those that make or drop a frame: it has no part in that.
func (p *planner) swappable(in *inst) bool {
	const frame = uint16(1<<amd64.RSP | 1<<amd64.RBP)
	d, known := in.StackDelta()
	return in.Kind == amd64.Other && in.movable() && in.HasMem && known && d == 0 && (in.GPRRead()|in.GPRWritten())&frame == 0 &&
		in.Encoding == amd64.Legacy && (in.Map != amd64.MapPrimary || in.Prefixes&(amd64.RepF3|amd64.RepneF2) == 0)
}

func isPushRBP(in *inst) bool {
	return in.Len == 1 && in.Map == amd64.MapPrimary && in.Opcode == 0x50|byte(amd64.RBP)
}

func isPopRBP(in *inst) bool {
	return in.Len == 1 && in.Map == amd64.MapPrimary && in.Opcode == 0x58|byte(amd64.RBP)
}

// isFrameStart says whether an instruction is mov %rsp,%rbp.
func isFrameStart(in *inst) bool {
	from, ok := copiedFrom(in, amd64.RBP)
	return ok && from == amd64.RSP
}

// swap puts the instruction that changes its place where it is to run.
func (s *Site) swap(moved []Moved) {
	if s.swapped == 0 {
		return
	}
	from, to := int(s.swapped)-1, int(s.swappedTo)
	m := moved[from]
	if to < from {
		copy(moved[to+1:from+1], moved[to:from])
	} else {
		copy(moved[from:to], moved[from+1:to+1])
	}
	moved[to] = m
}
