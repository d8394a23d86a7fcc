package ring

import (
	"slices"

	"github.com/callreel/callreel/reel"
)

// MarkSink is a Sink that takes the passings of markers, which are no calls: the word of each IsMark. They come in the order in which the
// thread has written them, but for one that was late. In a Go program the events that say which goroutine goes on come between them, see
// Drainer.Goroutines. Sinks that are none don't get them.
type MarkSink interface {
	Marks(events []reel.Event, payloads []Payload) error
}

// Marks takes the passings of markers out of events. It can be used again and again.
type Marks struct {
	// Goroutines says that what says which goroutine goes on is to be among the marks, too.
	Goroutines bool

	list  []reel.Event
	own   []Payload
	calls []Payload
}

// Split moves the other events of a run together and returns them with their payloads, and the marks with theirs. What it returns is valid until
// the next call.
func (m *Marks) Split(run []reel.Event, payloads []Payload) (calls []reel.Event, with []Payload, marks []reel.Event, own []Payload) {
	m.list, m.own, m.calls = m.list[:0], m.own[:0], m.calls[:0]
	kept := 0
	for i := range run {
		var p *Payload
		if len(payloads) > 0 && payloads[0].Event == i {
			p, payloads = &payloads[0], payloads[1:]
		}
		if IsMark(run[i].Word) {
			m.list = append(m.list, run[i])
			if p != nil {
				m.own = append(m.own, Payload{len(m.list) - 1, p.Data})
			}
			continue
		}
		if m.Goroutines && isSwitch(run[i].Word) {
			m.list = append(m.list, run[i])
		}
		if p != nil {
			m.calls = append(m.calls, Payload{kept, p.Data})
		}
		run[kept] = run[i]
		kept++
	}
	return run[:kept], m.calls, m.list, m.own
}

// passMarks hands marks on.
func (d *Drainer) passMarks(t *thread, marks []reel.Event, payloads []Payload) error {
	if t.marks == nil || t.sink == nil || len(marks) == 0 {
		return nil
	}
	d.totals.Marks += uint64(marksIn(marks))
	return t.marks.Marks(marks, payloads)
}

// marksIn says how many of the events are marks.
func marksIn(events []reel.Event) (n int) {
	for i := range events {
		if IsMark(events[i].Word) {
			n++
		}
	}
	return n
}

// isSwitch says whether an event's word is that of one that says which goroutine goes on.
func isSwitch(word uint32) bool {
	_, is := reel.Event{Word: word}.Goroutine()
	return is
}

// splitMarks takes the marks out of a run, and with them what says which goroutines they are of.
func (h *Run) splitMarks() {
	if !slices.ContainsFunc(h.Events, func(e reel.Event) bool { return IsMark(e.Word) || isSwitch(e.Word) }) {
		return
	}
	m := Marks{Goroutines: true}
	h.Events, h.Payloads, h.Marks, h.MarkPayloads = m.Split(h.Events, h.Payloads)
}
