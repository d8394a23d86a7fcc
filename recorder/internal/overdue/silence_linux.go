package overdue

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// mostHeld is how many events are held back at most.
const mostHeld = 64

// Silence puts what was seen of a thread between its events. It holds back the entries that come last: what was seen above them has to come
// before. The zero value is of a thread that has said nothing yet.
type Silence struct {
	Last uint64 // the tick of the last event, 0 if there was none
	Seen uint64 // calls that were put in so far
	// Usual, if not nil, says how many ticks calls of a function take as a rule, 0 if that isn't known. Where silence is usual (Look.Loose) a call
	// isn't taken to have gone on for much longer than that, or Least, on either side of when it was seen.
	Usual func(id uint32) uint64
	Least uint64
	// Recorded, if not nil, says that calls of a function are recorded now: the end of one around what is recorded will come. Of a call within
	// that it says nothing: the function was off as it was seen.
	Recorded func(id uint32) bool

	held     []reel.Event // entries, each below the one before
	payloads []ring.Payload
	looks    []Look
	outer    outer
	inner    inner  // what goes on within what is recorded
	began    opened // of which nothing was put out yet
	inside   uint64 // the tick of the last event within them

	events []reel.Event // what Next returns
	with   []ring.Payload
}

// Held is how many entries are held back.
func (s *Silence) Held() int { return len(s.held) }

// Around says whether calls that were seen go on around what is recorded.
func (s *Silence) Around() bool { return len(s.outer.open) > 0 }

// Heard adds what was seen.
func (s *Silence) Heard(l Look) { s.looks = append(s.looks, l) }

// Waits says that the thread has been found at a tick in a wait, which may be that of the last look.
func (s *Silence) Waits(wait, tick uint64) {
	if n := len(s.looks); n > 0 && wait != 0 && s.looks[n-1].Wait == wait {
		s.looks[n-1].until = tick
	}
}

// Looks is how many looks are kept.
func (s *Silence) Looks() int { return len(s.looks) }

// Flush returns what is known by now, as Next does, of a thread that goes on writing nothing. All that it had written at the last look has come.
func (s *Silence) Flush() ([]reel.Event, []ring.Payload) {
	s.events, s.with = s.events[:0], s.with[:0]
	if len(s.looks) == 0 || s.began.waits {
		return nil, nil
	}
	s.begin(s.looks[0].Tick)
	looks := s.unheld(s.looks[len(s.looks)-1].last())
	s.held, s.payloads = s.held[:0], s.payloads[:0]
	s.inner.see(s, looks)
	return s.events, s.with
}

// Next takes the thread's next events, with what they carry, and returns those that are to go on, valid until the next call. from and to are
// the ticks of the first and the last that the thread has written, which may be of functions that are left out. Without events nothing is held
// back any more of what comes before from.
func (s *Silence) Next(events []reel.Event, payloads []ring.Payload, from, to uint64) ([]reel.Event, []ring.Payload) {
	if s.began.waits {
		s.Last = max(s.Last, to)
		s.began.hold(events, payloads)
		return nil, nil
	}
	s.events, s.with = s.events[:0], s.with[:0]
	s.begin(from)
	var next *reel.Event
	if len(events) > 0 && events[0].Time == from {
		next = &events[0]
	}
	s.speak(from, next)
	s.Last = max(s.Last, to)
	n := len(events) - descending(events)
	for i := range events[:n] {
		if len(payloads) > 0 && payloads[0].Event == i {
			s.with = append(s.with, ring.Payload{Event: s.next(&events[i]), Data: payloads[0].Data})
			payloads = payloads[1:]
		}
		s.put(&events[i])
	}
	s.held = append(s.held[:0], events[n:]...)
	s.payloads = s.payloads[:0]
	for _, p := range payloads {
		s.payloads = append(s.payloads, ring.Payload{Event: p.Event - n, Data: slices.Clone(p.Data)})
	}
	return s.events, s.with
}

// End returns what is held back when nothing comes any more, valid until the next call.
func (s *Silence) End() ([]reel.Event, []ring.Payload) {
	s.events, s.with = s.events[:0], s.with[:0]
	to := s.Last
	for i := range s.looks {
		to = max(to, s.looks[i].last())
	}
	s.speak(to, nil)
	s.held, s.payloads, s.outer.open = s.held[:0], s.payloads[:0], s.outer.open[:0]
	return s.events, s.with
}

// descending is how many events at the end are entries of calls that go on, each within the one before.
func descending(events []reel.Event) (n int) {
	for n < len(events) && n < mostHeld {
		e := &events[len(events)-1-n]
		if e.IsExit() || n > 0 && int32(e.SP-events[len(events)-n].SP) <= 0 {
			break
		}
		n++
	}
	return n
}

// speak puts out what was held back, with what was seen until a tick, at which the thread has written next, if not nil.
func (s *Silence) speak(until uint64, next *reel.Event) {
	looks := s.unheld(until)
	s.inner.see(s, looks)
	if next != nil {
		s.inner.returns(s, next)
	}
	s.inner.end(s, until)
}

// unheld puts out what was held back, with what was seen around it, and returns the looks with what was seen within.
func (s *Silence) unheld(until uint64) []Look {
	looks := slices.DeleteFunc(s.looks, func(l Look) bool { return l.Tick < s.Last || l.Tick > until })
	for i := range looks { // a look at all of a stack sees them, too
		looks[i].until = min(looks[i].until, until)
		s.goOn(&looks[i])
		looks[i].Calls = slices.DeleteFunc(looks[i].Calls, s.outer.has)
	}
	var around []Call // a held one's is listed as well where its function has gone off since
	if len(looks) > 0 && len(s.held) > 0 {
		lowest := s.held[len(s.held)-1].SP
		for i := range looks {
			l := &looks[i]
			n := 0
			for n < len(l.Calls) && int32(l.Calls[n].SP-lowest) > 0 {
				n++
			}
			if i == 0 {
				around = slices.DeleteFunc(slices.Clone(l.Calls[:n]), s.holds)
			}
			l.Calls = l.Calls[n:]
		}
	}
	for i := range s.held {
		e := &s.held[i]
		for len(around) > 0 && int32(around[0].SP-e.SP) > 0 {
			s.enter(around[0], e.Time)
			s.outer.add(around[0], &looks[len(looks)-1])
			around = around[1:]
		}
		if len(s.payloads) > 0 && s.payloads[0].Event == i {
			s.with = append(s.with, ring.Payload{Event: s.next(e), Data: s.payloads[0].Data})
			s.payloads = s.payloads[1:]
		}
		s.put(e)
	}
	s.looks = s.looks[:0]
	return looks
}

func (s *Silence) holds(c Call) bool {
	return slices.ContainsFunc(s.held, func(e reel.Event) bool { return c == Call{e.SP, e.ID()} })
}

// enter puts in the entry of a call that was seen.
func (s *Silence) enter(c Call, tick uint64) {
	s.events = append(s.events, reel.Entry(tick, c.SP, c.ID))
	s.Seen++
}

// next is where in what is returned an event will be. Calls that it ends come before it.
func (s *Silence) next(e *reel.Event) int {
	s.leave(e)
	return len(s.events)
}

// put puts out an event of the thread.
func (s *Silence) put(e *reel.Event) {
	s.leave(e)
	s.inside = e.Time
	s.events = append(s.events, *e)
}
