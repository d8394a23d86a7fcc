package probe

import "github.com/callreel/callreel/isa/amd64"

// Most Go functions make their frame with push rbp; mov rbp, rsp, four bytes, and a jump takes five. What follows is often a load through
// a pointer, which may be nil and so can't be moved as it is, see mayPanic. There are two ways.

// checked makes a window that begins with the jump of the check whether the stack is large enough: the stub does that jump and then
// the event.
func (p *planner) checked(s span) (run, bool) {
	k := p.first - 1
	if k < 1 || p.insts[k].Kind != amd64.CondJump || p.isTarget(p.insts[p.first].addr) {
		return run{}, false
	}
	w, why := p.grow(k, k, s, false)
	return w, why == ReasonNone && w.room(p) >= nearJump && !crossesPage(p.insts[w.lo].addr, nearJump)
}

// hoisted makes a window of an entry whose third instruction may fault, behind those that make the frame, which it doesn't depend on: in
// the stub it comes before them, where the return address is on top of the stack.
func (p *planner) hoisted(k int, s span) (run, bool) {
	if k+hoistAt >= s.to || !makesFrame(p.insts[k:]) {
		return run{}, false
	}
	in := &p.insts[k+hoistAt]
	frame := amd64.RSP.Mask() | amd64.RBP.Mask()
	if in.Kind != amd64.Other || !in.movable() || in.covered || in.role != rolePlain || (in.GPRRead()|in.GPRWritten())&frame != 0 {
		return run{}, false
	}
	w := run{lo: k, hi: k + hoistAt + 1}
	start, end := p.insts[k].addr, in.end()
	return w, !p.targetInside(start, end) && w.size(p) >= nearJump && !crossesPage(start, nearJump)
}

// hoistAt is the index, in a window, of the instruction that is hoisted.
const hoistAt = 2

// makesFrame says whether the first two instructions are push rbp and mov rbp, rsp.
func makesFrame(insts []inst) bool {
	push, mov := &insts[0], &insts[1]
	return push.Map == amd64.MapPrimary && push.Opcode == 0x55 && push.REX&amd64.RexB == 0 &&
		mov.Map == amd64.MapPrimary && mov.Opcode == 0x89 && mov.Mod == 3 && mov.REX&amd64.RexW != 0 &&
		mov.Reg == uint8(amd64.RSP) && mov.RM == uint8(amd64.RBP)
}

// goEntry places the entry site of a Go function where the usual ways have failed.
func (p *planner) goEntry(s span) bool {
	if w, ok := p.checked(s); ok {
		site := p.window(w, RoleEntry)
		site.checked = true
		p.add(site, w.lo, w.hi)
		return true
	}
	if w, ok := p.hoisted(p.first, s); ok {
		site := p.window(w, RoleEntry)
		site.hoisted = true
		p.add(site, w.lo, w.hi)
		return true
	}
	return false
}

// goWindow emits the stub of an entry placed by goEntry, up to the way back.
func (s *stub) goWindow(site *Site) error {
	if site.hoisted {
		s.event(false, 0)
		s.body = s.PC()
		// Nobody who stands between these three can be led here: they are done in another order.
		for _, k := range [...]int{hoistAt, 0, 1} {
			if err := s.move(&s.moved[k]); err != nil {
				return err
			}
		}
		return nil
	}
	for i := range s.moved {
		m := &s.moved[i]
		if i == 1 {
			if m.Addr+s.fn.Slide == s.code.asked { // who stands there has not been counted yet
				s.code.answer = s.PC()
			}
			s.goChecked()
			if err := s.move(m); err != nil {
				return err
			}
			continue
		}
		if err := s.moveAt(m); err != nil {
			return err
		}
	}
	if len(s.moved) == 1 {
		s.goChecked()
	}
	return nil
}

// goChecked is due behind the jump of the check.
func (s *stub) goChecked() {
	s.event(false, 0)
	s.body = s.PC()
}
