package overdue

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// timesUsual is how many times as long as usual a call is taken to have gone on, on either side of when it was seen, where that isn't known.
const timesUsual = 4

// inner is what goes on within the innermost call that is recorded, as far as it was seen.
type inner struct {
	open  []Call
	last  uint64 // up to when they went on for sure; 0 before the first look
	loose bool
	wait  uint64 // of the last look
	since uint64 // when the thread was found in that wait first
}

// reach is how long a call is taken to have gone on, in ticks, before it was seen and behind that, where silence is usual.
func (s *Silence) reach(id uint32) uint64 {
	if s.Usual == nil {
		return math.MaxUint64
	}
	usual := s.Usual(id)
	if usual == 0 { // it was open when recording began, and has never ended
		return math.MaxUint64
	}
	return max(s.Least, timesUsual*min(usual, math.MaxUint64/timesUsual))
}

// reach is that of a call that was seen, which has lasted for as long as the thread waits at least.
func (in *inner) reach(s *Silence, id uint32, loose bool) uint64 {
	if !loose {
		return math.MaxUint64
	}
	return max(s.reach(id), (in.last-min(in.since, in.last))/2)
}

// see puts in what looks have seen. A call lasts from half way between the last look that hasn't seen it and the first that has, to half way
// between the last that has and the next. What all looks have seen lasts all the time. Where silence is usual it lasts no longer than it reaches.
func (in *inner) see(s *Silence, looks []Look) {
	for i := range looks {
		l := &looks[i]
		middle := s.Last
		if in.last != 0 {
			middle = in.last + (l.Tick-min(in.last, l.Tick))/2
		}
		waits := l.Wait != 0 && l.Wait == in.wait
		same := 0
		for same < len(in.open) && same < len(l.Calls) && in.open[same] == l.Calls[same] {
			c := &in.open[same]
			if !waits && l.Loose && l.Tick > in.last && l.Tick-in.last > in.reach(s, c.ID, true) {
				break
			}
			same++
		}
		in.leave(s, same, middle)
		if !waits {
			in.since = l.Tick
		}
		in.last, in.wait, in.loose = max(in.last, l.last()), l.Wait, l.Loose
		at := middle
		for _, c := range l.Calls[same:] {
			if reach := in.reach(s, c.ID, l.Loose); l.Tick > reach {
				at = max(at, l.Tick-reach)
			}
			in.open = append(in.open, c)
			s.enter(c, at)
		}
	}
}

// leave ends calls down to so many, at a tick at the latest.
func (in *inner) leave(s *Silence, down int, tick uint64) {
	if down >= len(in.open) {
		return
	}
	ends := make([]uint64, len(in.open))
	for i := down; i < len(in.open); i++ {
		if reach := in.reach(s, in.open[i].ID, in.loose); in.last < tick && reach < tick-in.last {
			tick = in.last + reach
		}
		ends[i] = tick
	}
	s.inside = ends[down]
	for i := len(in.open) - 1; i >= down; i-- {
		s.events = append(s.events, reel.Exit(ends[i], in.open[i].SP, in.open[i].ID))
	}
	in.open = in.open[:down]
}

// returns looks whether the thread's next event is the exit of a call that was seen, whose function is recorded again: it has gone on until then,
// and so have those that it lies within, which may go on.
func (in *inner) returns(s *Silence, e *reel.Event) {
	n := slices.Index(in.open, Call{SP: e.SP, ID: e.ID()})
	if n < 0 || !e.IsExit() {
		return
	}
	in.leave(s, n+1, max(e.Time, in.last))
	for _, c := range in.open[:n+1] {
		s.outer.open = append(s.outer.open, outerCall{Call: c, seen: e.Time})
	}
	in.open = in.open[:0]
}

// end ends all, at a tick at the latest.
func (in *inner) end(s *Silence, tick uint64) {
	in.leave(s, 0, max(tick, in.last))
	*in = inner{open: in.open[:0]}
}
