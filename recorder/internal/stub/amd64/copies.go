package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
)

// target is the address that a direct jump is to lead to in the stub: that of the copy, if the instruction there was moved.
func (s *emitter) target(m *plan.Moved) (amd64.Label, bool) {
	to, ok := m.Inst.Target(m.Addr)
	if !ok || m.Exit || m.Loop {
		return 0, false
	}
	l, ok := s.copies[to]
	return l, ok
}

// findCopies makes a label for every moved instruction that jumps lead to.
func (s *emitter) findCopies(sites []plan.Site) {
	clear(s.copies)
	for i := range sites {
		if !sites[i].HasTargets() {
			continue
		}
		s.moved = s.fn.Image.Moved(&sites[i], s.moved[:0])
		for k := range s.moved {
			if m := &s.moved[k]; m.Target {
				if s.copies == nil {
					s.copies = map[uint64]amd64.Label{}
				}
				s.copies[m.Addr] = s.NewLabel()
			}
		}
	}
}
