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

	held     []reel.Event // entries, each below the one before
	payloads []ring.Payload
	looks    []Look
	outer    []Call // calls that were seen and go on around what is recorded, outermost first
	inside   uint64 // the tick of the last event within them

	events []reel.Event // what Next returns
	with   []ring.Payload
}

// Held is how many entries are held back.
func (s *Silence) Held() int { return len(s.held) }

// Heard adds what was seen.
func (s *Silence) Heard(l Look) { s.looks = append(s.looks, l) }

// Next takes the thread's next events, with what they carry, and returns those that are to go on, valid until the next call. from and to are
// the ticks of the first and the last that the thread has written, which may be of functions that are left out.
func (s *Silence) Next(events []reel.Event, payloads []ring.Payload, from, to uint64) ([]reel.Event, []ring.Payload) {
	s.events, s.with = s.events[:0], s.with[:0]
	s.speak(from)
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
		to = max(to, s.looks[i].Tick)
	}
	s.speak(to)
	s.held, s.payloads = s.held[:0], s.payloads[:0]
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

// speak puts out what was held back, with what was seen until a tick.
func (s *Silence) speak(until uint64) {
	looks := slices.DeleteFunc(s.looks, func(l Look) bool { return l.Tick < s.Last || l.Tick > until })
	var around []Call
	if len(looks) > 0 && len(s.held) > 0 {
		lowest := s.held[len(s.held)-1].SP
		for i := range looks {
			l := &looks[i]
			n := 0
			for n < len(l.Calls) && int32(l.Calls[n].SP-lowest) > 0 {
				n++
			}
			if i == 0 {
				around = l.Calls[:n]
			}
			l.Calls = l.Calls[n:]
		}
	}
	for i := range s.held {
		e := &s.held[i]
		for len(around) > 0 && int32(around[0].SP-e.SP) > 0 {
			s.enter(around[0], e.Time)
			s.outer = append(s.outer, around[0])
			around = around[1:]
		}
		if len(s.payloads) > 0 && s.payloads[0].Event == i {
			s.with = append(s.with, ring.Payload{Event: s.next(e), Data: s.payloads[0].Data})
			s.payloads = s.payloads[1:]
		}
		s.put(e)
	}
	s.within(looks, until)
	s.looks = s.looks[:0]
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

// leave ends the calls around what is recorded that an event isn't within. Nothing is known of when they ended but that it was behind the last
// event that was.
func (s *Silence) leave(e *reel.Event) {
	for n := len(s.outer); n > 0 && int32(e.SP-s.outer[n-1].SP) >= 0; n-- {
		s.events = append(s.events, reel.Exit(s.inside, s.outer[n-1].SP, s.outer[n-1].ID))
		s.outer = s.outer[:n-1]
	}
}

// put puts out an event of the thread.
func (s *Silence) put(e *reel.Event) {
	s.leave(e)
	s.inside = e.Time
	s.events = append(s.events, *e)
}

// within puts in what was seen within the innermost call, from the last event to a tick. A call lasts from half way between the last look that
// hasn't seen it and the first that has, to half way between the last that has and the next. What all looks have seen lasts all the time.
func (s *Silence) within(looks []Look, until uint64) {
	var open []Call
	at, last := s.Last, s.Last
	leave := func(down int) {
		for n := len(open); n > down; n-- {
			s.events = append(s.events, reel.Exit(at, open[n-1].SP, open[n-1].ID))
		}
		open = open[:min(down, len(open))]
	}
	for i := range looks {
		l := &looks[i]
		if i > 0 {
			at = last + (l.Tick-min(last, l.Tick))/2
		}
		last = max(last, l.Tick)
		same := 0
		for same < len(open) && same < len(l.Calls) && open[same] == l.Calls[same] {
			same++
		}
		leave(same)
		for _, c := range l.Calls[same:] {
			open = append(open, c)
			s.enter(c, at)
		}
	}
	if at = max(until, last); len(open) > 0 {
		s.inside = at
	}
	leave(0)
}
