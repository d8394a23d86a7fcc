package probes

import (
	"errors"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// Rejecting is besides what is asked for by name: a function is on if it is wanted and not rejected.

// CanReject says why no function of this recording can be rejected, nil if some can.
func (s *Switches) CanReject() error {
	s.requests.Lock()
	defer s.requests.Unlock()
	if err := s.canSwitch(); err != nil {
		return err
	}
	if !s.switchesExits() {
		return errors.New("exits are not switched off with --min and --inside")
	}
	return nil
}

// Reject switches functions off, by their IDs, and others on again that it has switched off, as far as they are wanted. It returns which of
// them are off now that should be, and those that could not be switched on.
func (s *Switches) Reject(off, on []uint32) (are []uint32, err error) {
	s.requests.Lock()
	defer s.requests.Unlock()
	if s.ended {
		return nil, errEnding
	}
	var offs, ons []*switched
	for _, id := range off {
		s.rejected[id] = true
		if p := s.places[id]; p.a != nil && s.stateOf(id)&entriesOff == 0 {
			offs = append(offs, &switched{a: p.a, index: p.index, id: id})
		}
	}
	for _, id := range on {
		delete(s.rejected, id)
		if p := s.places[id]; p.a != nil && s.stateOf(id)&entriesOff != 0 && s.wanted(p.function(), nil) {
			ons = append(ons, &switched{a: p.a, index: p.index, id: id})
		}
	}
	err = errors.Join(s.switchOff(offs), s.switchOn(ons))
	for _, id := range off {
		if s.stateOf(id)&entriesOff != 0 {
			are = append(are, id)
		}
	}
	for _, w := range ons {
		if s.stateOf(w.id)&entriesOff != 0 { // that has failed
			s.rejected[w.id] = true
			are = append(are, w.id)
		}
	}
	return are, err
}

// Closed are those of rejected functions that are off entirely, or are now: no event of theirs comes any more.
func (s *Switches) Closed(ids []uint32) (closed []uint32) {
	s.requests.Lock()
	defer s.requests.Unlock()
	s.closeRejected(ids)
	for _, id := range ids {
		if s.shut[id] || s.stateOf(id)&(entriesOff|exitsOff) == entriesOff|exitsOff {
			closed = append(closed, id)
		}
	}
	return closed
}

// IsOff says whether a function's calls aren't recorded now.
func (s *Switches) IsOff(id uint32) bool { return s.stateOf(id)&entriesOff != 0 }

// Kept says whether a function is never to be rejected.
func (s *Switches) Kept(id uint32) bool {
	s.requests.Lock()
	defer s.requests.Unlock()
	keep, known := s.keeps[id]
	if !known {
		fn := s.places[id].function()
		keep = neverRejected(fn, s.c.Keeps) || len(fn.Marks) > 0 // which are written with its events
		s.keeps[id] = keep
	}
	return keep
}

// neverRejected says so of a function, nil for one that isn't known; keeps, if not nil, says of others.
func neverRejected(fn *stub.Probe, keeps func(fn *stub.Probe) bool) bool {
	return fn == nil || keepsOn(fn) || keeps != nil && keeps(fn)
}
