package probes

import (
	"slices"
	"time"
)

// exitsAfter is how long entries have been off, at least, when exits are switched off: threads that are inside an entry's event go on.
const exitsAfter = 250 * time.Millisecond

const (
	// closePatience is for how long it is awaited that all is read, while nobody else can change anything.
	closePatience = 200 * time.Millisecond
	// shutAfter is when exits of rejected functions are switched off all the same.
	shutAfter = 500 * time.Millisecond
)

// close switches exits off when no call is open any more.
func (s *Switches) close() {
	const soon, late = 50 * time.Millisecond, time.Second
	for rest := soon; ; {
		select {
		case <-s.over:
			return
		case <-time.After(rest):
		}
		s.requests.Lock()
		n := len(s.closing)
		s.closeSome()
		left := len(s.closing)
		s.waits = left > 0
		s.requests.Unlock()
		switch {
		case left == 0:
			return
		case left < n:
			rest = soon
		default:
			rest = min(2*rest, late)
		}
	}
}

// closeSome switches those exits off of which no call is open.
func (s *Switches) closeSome() {
	now := time.Now()
	var due []*switched
	for _, w := range s.closing {
		if now.Sub(w.since) >= exitsAfter {
			due = append(due, w)
		}
	}
	if len(due) == 0 {
		return
	}
	if !s.switchesExits() { // any more
		s.closing = nil
		return
	}
	s.shutSome(due, now)
	var closed []*switched
	if !s.Rounds.after(s.over, closePatience, false, func() {
		open, err := s.loop.OpenFunctions()
		if err != nil {
			s.c.Notice("functions that are off can't be closed: %v", err)
			return
		}
		for _, w := range due {
			if open[w.id] || !s.switchesExits() {
				continue
			}
			if !s.c.Late {
				s.update(w.id, exitsOff, 0)
			}
			closed = append(closed, w)
		}
	}) {
		return
	}
	is := map[*switched]bool{}
	for _, w := range closed {
		is[w] = true
		if delete(s.shut, w.id); s.c.Late {
			s.shut[w.id] = true
		}
		if err := s.exchange(w, true, false); err != nil {
			s.c.Notice("%v", err)
		}
	}
	s.closing = slices.DeleteFunc(s.closing, func(w *switched) bool { return is[w] })
}

// shutSome switches exits off of rejected functions for which that wasn't possible for long, since what they have written isn't read so fast: they
// go on costing what was to be saved. Of a call that is open just then, one or none of each thread, the end isn't seen.
func (s *Switches) shutSome(due []*switched, now time.Time) {
	for _, w := range due {
		if !s.rejected[w.id] || s.shut[w.id] || now.Sub(w.since) < shutAfter {
			continue
		}
		s.shut[w.id] = true
		if err := s.exchange(w, true, false); err != nil {
			s.c.Notice("%v", err)
		}
	}
}
