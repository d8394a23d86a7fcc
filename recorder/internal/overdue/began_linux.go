package overdue

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// heldAtOnce is how many events are held back in one piece: what is held may be millions, and would be copied many times if it grew in one.
const heldAtOnce = 1 << 15

// opened is what a thread had open when recording began, and what is held back until that is known: it comes before all else.
type opened struct {
	waits  bool
	held   int // events
	pieces []piece
	tick   uint64
	calls  []Call
}

// piece is some events that follow each other, with what they carry.
type piece struct {
	events   []reel.Event
	payloads []ring.Payload
}

func (o *opened) hold(events []reel.Event, payloads []ring.Payload) {
	o.held += len(events)
	for done := 0; len(events) > 0; {
		switch n := len(o.pieces); {
		case n == 0: // most threads never have another
			o.pieces = append(o.pieces, piece{})
		case len(o.pieces[n-1].events) == heldAtOnce:
			o.pieces = append(o.pieces, piece{events: make([]reel.Event, 0, heldAtOnce)})
		}
		p := &o.pieces[len(o.pieces)-1]
		first := len(p.events)
		n := min(len(events), heldAtOnce-first)
		p.events = append(p.events, events[:n]...)
		for len(payloads) > 0 && payloads[0].Event < done+n {
			p.payloads = append(p.payloads, ring.Payload{Event: first + payloads[0].Event - done, Data: slices.Clone(payloads[0].Data)})
			payloads = payloads[1:]
		}
		events, done = events[n:], done+n
	}
}

// outside are the calls of a look that were open before any of the events: what has been called since is below the highest of them.
func (o *opened) outside(l *Look) []Call {
	n := len(l.Calls)
	for _, p := range o.pieces {
		for i := range p.events {
			if e := &p.events[i]; e.Time <= l.Tick {
				for n > 0 && e.SP-l.Calls[n-1].SP < otherStack {
					n--
				}
			}
		}
	}
	return l.Calls[:n]
}

// Await holds back all that the thread writes, until Begun. It is for a thread that has said nothing yet.
func (s *Silence) Await() { s.began.waits = true }

// Awaits says how many events are held back since Await; false if none are, any more.
func (s *Silence) Awaits() (events int, yes bool) { return s.began.held, s.began.waits }

// Begun ends Await. The look has seen all of the thread's stack; all events that the thread had written by then have come. What it has seen
// that had been called before is taken for open since a tick. An empty look has seen nothing. Events are put out as Next returns them, piece by
// piece, until put returns an error, which is returned.
func (s *Silence) Begun(l Look, since uint64, put func([]reel.Event, []ring.Payload) error) error {
	o := s.began
	s.began = opened{calls: o.outside(&l), tick: since}
	for i := range o.pieces {
		p := &o.pieces[i]
		events, payloads := s.Next(p.events, p.payloads, p.events[0].Time, s.Last)
		*p = piece{} // it isn't needed any more
		if len(events) == 0 {
			continue
		}
		if err := put(events, payloads); err != nil {
			return err
		}
	}
	return nil
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
