package probes

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// omitted is what functions that are or were off have written.
type omitted struct {
	events, entries uint64
	kept            []reel.Event
	payloads        []ring.Payload
}

// Omitted is how many events were omitted, and how many of them are entries. It is for when nothing comes any more.
func (s *Switches) Omitted() (events, entries uint64) { return s.omitted.events, s.omitted.entries }

// Pick leaves out, of a thread's next events, what functions that are or were off have no pairs for, see Switches. The result is valid
// until the next call. It is used by one goroutine.
func (s *Switches) Pick(open *OpenCalls, events []reel.Event, payloads []ring.Payload) ([]reel.Event, []ring.Payload) {
	if !s.touched.Load() {
		open.pass(events)
		return events, payloads
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.haveBeenOff(events) {
		open.pass(events)
		return events, payloads
	}
	l := &s.omitted
	l.kept, l.payloads = l.kept[:0], l.payloads[:0]
	for i := range events {
		e := &events[i]
		is := s.is(e)
		keep := true
		switch {
		case !e.IsExit() && (is&exitsOff != 0 || is&cameBack != 0 && s.isGone(e)):
			open.end(e.SP, 0)
			keep = false
			l.entries++
		default:
			matched := open.step(e)
			keep = matched || is&wasOff == 0
		}
		var p *ring.Payload
		if len(payloads) > 0 && payloads[0].Event == i {
			p, payloads = &payloads[0], payloads[1:]
		}
		if !keep {
			l.events++
			continue
		}
		if p != nil {
			l.payloads = append(l.payloads, ring.Payload{Event: len(l.kept), Data: p.Data})
		}
		l.kept = append(l.kept, *e)
	}
	return l.kept, l.payloads
}

// Touched says whether any function has been switched off.
func (s *Switches) Touched() bool { return s.touched.Load() }

// PickRuns is Pick for all that the rings hold of a thread, when calls were open before, which changes. It is used by one goroutine.
func (s *Switches) PickRuns(open *OpenCalls, runs []ring.Run) {
	if !s.touched.Load() {
		return
	}
	for i := range runs {
		h := &runs[i]
		if i > 0 && h.Seq != runs[i-1].Seq+1 {
			open.Forget()
		}
		events, payloads := s.Pick(open, h.Events, h.Payloads)
		if len(events) < len(h.Events) {
			h.Events, h.Payloads = slices.Clone(events), slices.Clone(payloads)
		}
	}
}

// is says what is known of an event's function. The caller holds mu.
func (s *Switches) is(e *reel.Event) uint8 {
	if id := e.Word >> 1; uint64(id) < uint64(len(s.state)) {
		return s.state[id]
	}
	return 0
}

func (s *Switches) haveBeenOff(events []reel.Event) bool {
	for i := range events {
		if s.is(&events[i]) != 0 {
			return true
		}
	}
	return false
}
