package overdue

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// Lost says that the ends of calls will not be written: the innermost that are open, outermost first, which went on until a tick at least. From
// then on they are calls that were seen last then, as others that aren't recorded. All that the thread has written has come, none of it is
// within them. It returns events as Next does.
func (s *Silence) Lost(calls []Call, tick uint64) ([]reel.Event, []ring.Payload) {
	s.events, s.with = s.events[:0], s.with[:0]
	tick = max(tick, s.Last)
	s.begin(tick)
	s.looks = slices.DeleteFunc(s.looks, func(l Look) bool { return l.Tick < tick })
	until := tick
	seen := make([][]Call, len(s.looks))
	for i := range s.looks {
		l := &s.looks[i]
		until = max(until, l.last())
		seen[i] = slices.Clone(l.Calls)
		l.Loose = true // that it was unusual was for them
	}
	innermost := calls[len(calls)-1]
	looks := s.unheld(until)
	s.held, s.payloads = s.held[:0], s.payloads[:0]
	for i := range looks {
		l, known := &looks[i], len(calls)
		if l.Within != innermost {
			for known = 0; known < len(calls) && slices.Contains(seen[i], calls[known]); {
				known++
			}
		}
		within := slices.DeleteFunc(l.Calls, func(c Call) bool { return slices.Contains(calls, c) })
		l.Calls = slices.Concat(calls[:known], within)
	}
	in := &s.inner
	in.open = slices.Concat(calls, in.open)
	in.last, in.since, in.wait, in.loose = max(in.last, tick), max(in.last, tick), 0, true
	in.see(s, looks)
	return s.events, s.with
}
