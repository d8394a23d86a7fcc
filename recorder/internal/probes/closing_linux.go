package probes

import (
	"slices"
	"time"

	"github.com/callreel/callreel/recorder/internal/ring"
)

// exitsAfter is how long entries have been off, at least, when exits are switched off: threads that are inside an entry's event go on.
const exitsAfter = 250 * time.Millisecond

const (
	// closePatience is for how long it is awaited that all is read, while nobody else can change anything.
	closePatience = 200 * time.Millisecond
	// settleAfter, settlePatience and shutAfter are exitsAfter and closePatience for rejected functions, and when their exits are switched off
	// all the same: what they cost is to end soon. Of a call that is open just then, one or none of each thread, the end isn't seen.
	settleAfter    = 5 * time.Millisecond
	settlePatience = 5 * time.Millisecond
	shutAfter      = 10 * time.Millisecond
	// rejectedAfter is when exits of rejected functions are seen to here, that nobody asks for.
	rejectedAfter = time.Second
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
	if !s.switchesExits() { // any more
		s.closing = nil
		return
	}
	var due []*switched
	for _, w := range s.closing {
		after := exitsAfter
		if s.rejected[w.id] {
			after = rejectedAfter
		}
		if now.Sub(w.since) >= after {
			due = append(due, w)
		}
	}
	s.closeThose(due, closePatience)
}

// closeThose switches the exits of functions off of which no call is open, if all that was written is read in time. The caller holds requests.
func (s *Switches) closeThose(due []*switched, patience time.Duration) {
	if len(due) == 0 {
		return
	}
	var closed []*switched
	if !s.Rounds.after(s.over, patience, false, func() {
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

// closeRejected is closeSome for those of some rejected functions that are on no list yet. The caller holds requests.
func (s *Switches) closeRejected(ids []uint32) {
	if !s.switchesExits() {
		return
	}
	asked := map[uint32]bool{}
	for _, id := range ids {
		asked[id] = s.rejected[id] && !s.shut[id]
	}
	now := time.Now()
	var due []*switched
	for _, w := range s.closing {
		if asked[w.id] && now.Sub(w.since) >= settleAfter {
			due = append(due, w)
		}
	}
	s.closeThose(due, settlePatience)
	now = time.Now()
	for _, w := range due {
		if s.shut[w.id] || s.stateOf(w.id)&exitsOff != 0 || now.Sub(w.since) < shutAfter {
			continue
		}
		s.shut[w.id] = true
		if err := s.exchange(w, true, false); err != nil {
			s.c.Notice("%v", err)
		}
		s.loseEnds(w.id, ring.Ticks())
	}
}
