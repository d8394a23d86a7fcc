package probes

import (
	"time"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// lateEnds is how long after exits were switched off a thread that was in one's event may still write it.
const lateEnds = 5 * time.Millisecond

// lostEnds says since which tick the ends of a function's calls have not been written, or weren't, though some may have been open: see shutAfter.
type lostEnds struct {
	since uint64
	still bool
}

func (s *Switches) loseEnds(id uint32, tick uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[id] = lostEnds{tick, true}
}

func (s *Switches) endsComeAgain(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, is := s.lost[id]; is {
		s.lost[id] = lostEnds{l.since, false}
	}
}

// endsLostSince is since when the ends of a function's calls are lost.
func (s *Switches) endsLostSince(id uint32) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost[id].since
}

// endLost says whether the end of a call, by its entry, may not have been written, and since when that is so.
func (s *Switches) endLost(e *reel.Event) (since uint64, lost bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, is := s.lost[e.ID()]
	return l.since, is && (l.still || e.Time < l.since)
}

// Forget takes the innermost calls of a thread out of what is counted whose ends are not written any more, as their functions' exits were
// switched off while they were open: nobody knows how long they take. All that the thread has written before a tick was counted. It returns
// their entries, innermost first, and up to when all of them went on. Without that a thread that writes nothing more seems to be within them.
func (s *Switches) Forget(t *reel.LiveThread, before, ticksPerSecond uint64) (entries []reel.Event, since uint64) {
	if !s.touched.Load() {
		return nil, 0
	}
	late := ring.TicksOf(lateEnds, ticksPerSecond)
	for {
		e, open := t.Open(0)
		if !open {
			return entries, since
		}
		from, lost := s.endLost(&e)
		if !lost || before < from+late {
			return entries, since
		}
		if len(entries) == 0 {
			since = from
		}
		entries = append(entries, e)
		t.Forget()
	}
}
