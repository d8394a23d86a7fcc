package overdue

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// opened is what a thread had open when recording began, and what is held back until that is known: it comes before all else.
type opened struct {
	waits    bool
	events   []reel.Event
	payloads []ring.Payload
	tick     uint64
	calls    []Call
}

func (o *opened) hold(events []reel.Event, payloads []ring.Payload) {
	for _, p := range payloads {
		o.payloads = append(o.payloads, ring.Payload{Event: p.Event + len(o.events), Data: slices.Clone(p.Data)})
	}
	o.events = append(o.events, events...)
}

// outside are the calls of a look that were open before any of the events: what has been called since is below the highest of them.
func (o *opened) outside(l *Look) []Call {
	n := len(l.Calls)
	for i := range o.events {
		if e := &o.events[i]; e.Time <= l.Tick {
			for n > 0 && e.SP-l.Calls[n-1].SP < otherStack {
				n--
			}
		}
	}
	return l.Calls[:n]
}

// Await holds back all that the thread writes, until Begun. It is for a thread that has said nothing yet.
func (s *Silence) Await() { s.began.waits = true }

// Awaits says how many events are held back since Await; false if none are, any more.
func (s *Silence) Awaits() (events int, yes bool) { return len(s.began.events), s.began.waits }

// Begun ends Await. The look has seen all of the thread's stack; all events that the thread had written by then have come. What it has seen
// that had been called before is taken for open since a tick. An empty look has seen nothing. It returns events as Next does.
func (s *Silence) Begun(l Look, since uint64) ([]reel.Event, []ring.Payload) {
	o := s.began
	s.began = opened{calls: o.outside(&l), tick: since}
	if len(o.events) == 0 {
		return nil, nil
	}
	return s.Next(o.events, o.payloads, o.events[0].Time, s.Last)
}

// begin puts in what was open when recording began, before an event.
func (s *Silence) begin(before uint64) {
	tick := min(s.began.tick, before)
	for _, c := range s.began.calls {
		s.enter(c, tick)
	}
	for _, c := range s.began.calls {
		s.outer.open = append(s.outer.open, outerCall{Call: c, seen: before})
	}
	if len(s.began.calls) > 0 {
		s.inside = tick
	}
	s.began.calls = nil
}
