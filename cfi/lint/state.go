package lint

import "slices"

// slot is 8 bytes of memory in the own frame.
type slot struct {
	at  place
	val value
}

// place is an address in the own frame: an offset from the CFA (anchor -1) or from an anchor.
type place struct {
	anchor int32
	off    int64
}

const fromCFA int32 = -1

// maxSlots bounds what is known of memory: saved registers and saved stack pointers, some twenty in the largest
// functions.
const maxSlots = 96

// state is what is known before an instruction.
type state struct {
	p        *processor
	regs     []value
	slots    []slot // no order; a place that is not there was never written
	overflow bool   // nor is it known what is in a place that is not there
}

// onEntry is the state in which a call enters a function.
func (p *processor) onEntry() *state {
	s := &state{p: p, regs: make([]value, p.registers)}
	for r := range s.regs {
		s.regs[r] = p.entry(int32(r))
	}
	s.regs[p.sp] = value{kind: onStack, off: -p.entryCFA}
	if !p.keepsRA() {
		s.slots = append(s.slots, slot{place{fromCFA, -p.entryCFA}, p.entry(p.ra)})
	}
	return s
}

// nothing is the state of which nothing is known.
func (p *processor) nothing() *state {
	s := &state{p: p, regs: make([]value, p.registers)}
	s.lose()
	return s
}

// lose forgets all.
func (s *state) lose() {
	s.slots, s.overflow = nil, true
	for r := range s.regs {
		s.regs[r] = top
	}
}

func (s *state) clone() *state {
	c := *s
	c.regs, c.slots = slices.Clone(s.regs), slices.Clone(s.slots)
	return &c
}

// copyFrom makes s equal to t and keeps its memory.
func (s *state) copyFrom(t *state) {
	regs, slots := append(s.regs[:0], t.regs...), append(s.slots[:0], t.slots...)
	*s = *t
	s.regs, s.slots = regs, slots
}

// placeOf returns the place that a value is the address of.
func placeOf(v value) place {
	if v.kind == anchored {
		return place{v.id, v.off}
	}
	return place{fromCFA, v.off}
}

// at returns what is in a place. What the caller has put there counts as not written: it is nothing that a register held
// on entry.
func (s *state) at(p place) value {
	for k := range s.slots {
		if s.slots[k].at == p {
			return s.slots[k].val
		}
	}
	if s.overflow {
		return top
	}
	return value{kind: never}
}

// put writes 8 bytes to a place.
func (s *state) put(p place, v value) {
	s.spoil(p, 8, value{})
	interesting := v.kind == entry || v.framed() || v.maybe()&(mayEntry|mayArg|mayOwn) != 0
	for k := range s.slots {
		if s.slots[k].at == p {
			s.slots[k].val = v
			return
		}
	}
	// What never held anything of interest need not be told from what was never written.
	if !interesting {
		return
	}
	if len(s.slots) == maxSlots {
		s.overflow = true
		return
	}
	s.slots = append(s.slots, slot{p, v})
}

// spoil gives v to the slots that n bytes from a place on overlap.
func (s *state) spoil(p place, n int64, v value) {
	for k := range s.slots {
		at := s.slots[k].at
		if at.anchor == p.anchor && at.off < p.off+n && at.off+8 > p.off {
			s.slots[k].val = v
		}
	}
}

// blur is a write of n bytes of which it is not certain that it goes to this place.
func (s *state) blur(p place, n int64, v may) {
	for k := range s.slots {
		at := s.slots[k].at
		if at.anchor == p.anchor && at.off < p.off+n && at.off+8 > p.off {
			s.slots[k].val = value{may: s.slots[k].val.maybe() | v}
		}
	}
}

// forget takes away all that refers to an anchor, which is to stand for another place from now on.
func (s *state) forget(anchor int32) {
	for r := range s.regs {
		if s.regs[r].kind == anchored && s.regs[r].id == anchor {
			s.regs[r] = value{may: mayStack | mayOwn}
		}
	}
	kept := s.slots[:0]
	for _, e := range s.slots {
		if e.at.anchor == anchor {
			s.overflow = true
			continue
		}
		if e.val.kind == anchored && e.val.id == anchor {
			e.val = value{may: mayStack | mayOwn}
		}
		kept = append(kept, e)
	}
	s.slots = kept
}

// meet joins t into s and says whether that changed s.
func (s *state) meet(t *state) (changed bool) {
	for r := range s.regs {
		if j := join(s.regs[r], t.regs[r]); j != s.regs[r] {
			s.regs[r], changed = j, true
		}
	}
	if t.overflow && !s.overflow {
		s.overflow, changed = true, true
	}
	for k := range s.slots {
		e := &s.slots[k]
		if j := join(e.val, t.at(e.at)); j != e.val {
			e.val, changed = j, true
		}
	}
	for k := range t.slots {
		e := t.slots[k]
		old := s.at(e.at)
		if j := join(old, e.val); j != old {
			changed = true
			if len(s.slots) == maxSlots {
				s.overflow = true
				continue
			}
			s.slots = append(s.slots, slot{e.at, j})
		}
	}
	return changed
}

// inRegister returns a register that holds what register id held on entry, itself if it does.
func (s *state) inRegister(id int32) (int, bool) {
	if id < returnAddress && s.regs[id].holds(id) {
		return int(id), true
	}
	for r := range s.regs {
		if s.regs[r].holds(id) {
			return r, true
		}
	}
	return 0, false
}

// inMemory returns a place that holds what register id held on entry.
func (s *state) inMemory(id int32) (place, bool) {
	for k := range s.slots {
		if s.slots[k].val.holds(id) {
			return s.slots[k].at, true
		}
	}
	return place{}, false
}
