package recorder

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// leftOut is what the drain has left out of functions that are or were off.
type leftOut struct {
	events, entries uint64
	kept            []reel.Event
	payloads        []ring.Payload
}

// pick leaves out, of a thread's next events, what functions that are or were off have no pairs for, see switches. The result is valid
// until the next call. It is used by one goroutine.
func (s *switches) pick(open *openCalls, events []reel.Event, payloads []ring.Payload) ([]reel.Event, []ring.Payload) {
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
	l := &s.left
	l.kept, l.payloads = l.kept[:0], l.payloads[:0]
	for i := range events {
		e := &events[i]
		is := s.is(e)
		keep := true
		switch {
		case !e.IsExit() && is&exitsOff != 0:
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

// pickHeld is pick for all that the rings hold of a thread.
func (s *switches) pickHeld(runs []ring.Held) {
	if !s.touched.Load() {
		return
	}
	var open openCalls
	for i := range runs {
		h := &runs[i]
		if i > 0 && h.Seq != runs[i-1].Seq+1 {
			open = openCalls{}
		}
		events, payloads := s.pick(&open, h.Events, h.Payloads)
		if len(events) < len(h.Events) {
			h.Events, h.Payloads = slices.Clone(events), slices.Clone(payloads)
		}
	}
}

// is says what is known of an event's function. The caller holds mu.
func (s *switches) is(e *reel.Event) uint8 {
	if id := e.Word >> 1; uint64(id) < uint64(len(s.state)) {
		return s.state[id]
	}
	return 0
}

func (s *switches) haveBeenOff(events []reel.Event) bool {
	for i := range events {
		if s.is(&events[i]) != 0 {
			return true
		}
	}
	return false
}

// openFunctions are those of which calls are open, as far as events have been drained.
func (d *drain) openFunctions() map[uint32]bool {
	open := map[uint32]bool{}
	for _, k := range d.known {
		for id := range k.open.functions {
			open[id] = true
		}
	}
	return open
}

// rounds lets things be done in the recording's loop when all has been drained that was written before.
type rounds struct {
	waiting atomic.Bool
	mu      sync.Mutex // guards what follows
	begun   uint64
	waiters []*waiter
}

type waiter struct {
	begun uint64 // rounds, when it began to wait
	f     func(d *drain)
	done  chan struct{}
}

// roundPatience is for how long a round is waited for in which nothing is left to be drained.
const roundPatience = 10 * time.Second

// begin is called before each round.
func (r *rounds) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
}

// end is called behind each round. events is how many it has drained: with too many it may have left some.
func (r *rounds) end(d *drain, events int) {
	if !r.waiting.Load() || events >= ring.MostAtOnce {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.waiters[:0]
	for _, w := range r.waiters {
		if w.begun == r.begun {
			left = append(left, w)
			continue
		}
		w.f(d)
		close(w.done)
	}
	clear(r.waiters[len(left):])
	r.waiters = left
	r.waiting.Store(len(left) > 0)
}

// after waits until f was called in the loop, behind a round that began later than this call. It returns false where that doesn't come.
func (r *rounds) after(over <-chan struct{}, f func(d *drain)) bool {
	w := &waiter{f: f, done: make(chan struct{})}
	r.mu.Lock()
	w.begun = r.begun
	r.waiters = append(r.waiters, w)
	r.waiting.Store(true)
	r.mu.Unlock()
	select {
	case <-w.done:
		return true
	case <-over:
	case <-time.After(roundPatience):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.waiters {
		if r.waiters[i] == w {
			r.waiters = append(r.waiters[:i], r.waiters[i+1:]...)
			return false
		}
	}
	return true
}
