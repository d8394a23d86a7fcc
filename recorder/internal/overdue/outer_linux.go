package overdue

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// outer is what was seen and goes on around what is recorded.
type outer struct {
	open []outerCall // outermost first
	wait uint64      // of the look that has seen them last
}

// outerCall is a call, the tick at which it was seen last, and that from which on an event may be too late for it.
type outerCall struct {
	Call
	seen, due uint64
}

func (o *outer) has(c Call) bool {
	return slices.ContainsFunc(o.open, func(x outerCall) bool { return x.Call == c })
}

// add adds a call that a look has seen within the others.
func (o *outer) add(c Call, l *Look) {
	o.open, o.wait = append(o.open, outerCall{Call: c, seen: l.last()}), l.Wait
}

// saw notes that so many go on at a tick.
func (o *outer) saw(n int, tick uint64) {
	for i := range o.open[:n] {
		o.open[i].seen = max(o.open[i].seen, tick)
	}
}

// otherStack is how far above a call's frame a stack pointer is that of another stack, of a coroutine or for signals, in bytes.
const otherStack = 8 << 20

// goOn says by a look which calls around what is recorded go on, and ends the others: those that it would have seen, and, where silence is usual,
// those that it has seen so long after the last time that they are calls of their own, of the same functions. Around what the look was at go on
// all that were around it before.
func (s *Silence) goOn(l *Look) {
	o := &s.outer
	same := l.Wait != 0 && l.Wait == o.wait
	n := 0
	for ; n < len(o.open); n++ {
		c := &o.open[n]
		if l.Within != (Call{}) && int32(c.SP-l.Within.SP) > 0 {
			continue
		}
		if !slices.Contains(l.Calls, c.Call) {
			if s.Usual != nil && s.Usual(c.ID) != 0 && !s.willEnd(c.ID) {
				break
			}
			continue
		}
		if l.Loose && !same && l.Tick > c.seen && l.Tick-c.seen > s.reachAround(c.ID) {
			break
		}
	}
	s.leaveTo(n)
	o.saw(n, l.last())
	o.wait = l.Wait
}

// leave ends the calls around what is recorded that an event isn't within, and those that were seen too long ago to be the same still. Nothing is
// known of when they ended but that it was behind the last event that was within, unless the event is their exit.
func (s *Silence) leave(e *reel.Event) {
	open := s.outer.open
	down := len(open)
	for down > 0 && e.SP-open[down-1].SP < otherStack {
		down--
	}
	is := down < len(open) && e.IsExit() && open[down].Call == Call{e.SP, e.ID()}
	for i := 0; i < down && !is; i++ {
		if c := &open[i]; e.Time >= c.due && s.isOver(c, e.Time) {
			down = i
		}
	}
	if is {
		s.leaveTo(down + 1)
		s.outer.open = open[:down]
		return
	}
	s.leaveTo(down)
}

// willEnd says whether the end of a call around what is recorded will be written.
func (s *Silence) willEnd(id uint32) bool { return s.Recorded != nil && s.Recorded(id) }

// reachAround is how long a call around what is recorded is taken to have gone on behind when it was seen.
func (s *Silence) reachAround(id uint32) uint64 {
	if s.willEnd(id) {
		return math.MaxUint64
	}
	return s.reach(id)
}

// isOver says whether a call was seen so long ago that it can't be the same any more, and when that is to be looked at again: what is usual may be
// another thing by then.
func (s *Silence) isOver(c *outerCall, tick uint64) bool {
	reach := s.reachAround(c.ID)
	if tick > c.seen && tick-c.seen > reach {
		return true
	}
	c.due = tick + s.Least
	if end := c.seen + reach; end >= reach {
		c.due = min(c.due, end+1)
	}
	return false
}

// leaveTo ends those calls around what is recorded that are within so many of them.
func (s *Silence) leaveTo(down int) {
	for n := len(s.outer.open); n > down; n-- {
		c := s.outer.open[n-1]
		s.events = append(s.events, reel.Exit(s.inside, c.SP, c.ID))
	}
	s.outer.open = s.outer.open[:min(down, len(s.outer.open))]
}
