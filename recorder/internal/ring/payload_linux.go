package ring

import (
	"encoding/binary"
	"slices"

	"github.com/callreel/callreel/reel"
)

// Payload is what an event carries besides: values of arguments, or a result.
type Payload struct {
	Event int    // its index in the events that it comes with
	Data  []byte // a multiple of PayloadBytes; valid during the call only
}

// PayloadSink is a Sink that takes payloads. Others get the events alone.
type PayloadSink interface {
	AppendWith(events []reel.Event, payloads []Payload) error
}

// isPayload says whether an event's word is that of one that only carries a payload, or fills a chunk.
func isPayload(word uint32) bool { return word&PayloadMask == PayloadWord }

// Payloads takes payloads out of events. It can be used again and again.
type Payloads struct {
	list []Payload
	data []byte
}

// Split moves the events of a run together and returns them, and their payloads. A payload that isn't whole, or isn't behind an event,
// is left out: its event was torn, or the target has written over its rings.
func (p *Payloads) Split(run []reel.Event) ([]reel.Event, []Payload) {
	p.list, p.data = p.list[:0], p.data[:0]
	kept := 0
	for i := 0; i < len(run); {
		if !isPayload(run[i].Word) {
			run[kept] = run[i]
			kept++
			i++
			continue
		}
		from := i
		for i < len(run) && isPayload(run[i].Word) && (i == from || index(run[i].Word) == i-from) {
			i++
		}
		if n := count(run[from].Word); n == i-from && index(run[from].Word) == 0 && kept > 0 && (from == 0 || !isPayload(run[from-1].Word)) {
			p.take(kept-1, run[from:i])
		}
	}
	return run[:kept], p.list
}

func index(word uint32) int { return int(word >> PayloadIndexShift & 0xFF) }
func count(word uint32) int { return int(word >> PayloadCountShift & 0xFF) }

// take notes the payload of an event.
func (p *Payloads) take(event int, run []reel.Event) {
	from := len(p.data)
	for i := range run {
		p.data = binary.LittleEndian.AppendUint64(p.data, run[i].Time)
		p.data = binary.LittleEndian.AppendUint32(p.data, run[i].SP)
	}
	p.list = append(p.list, Payload{event, p.data[from:len(p.data):len(p.data)]})
}

// Within are the payloads of events from from up to to, with their indexes from there on.
func Within(payloads []Payload, from, to int) []Payload {
	var list []Payload
	for _, p := range payloads {
		if p.Event >= from && p.Event < to {
			p.Event -= from
			list = append(list, p)
		}
	}
	return list
}

// pass hands events on to a thread's sink.
func (t *thread) pass(events []reel.Event, payloads []Payload) error {
	return appendTo(t.sink, events, payloads)
}

// appendTo gives events to a sink, and payloads if it takes such.
func appendTo(sink Sink, events []reel.Event, payloads []Payload) error {
	if len(payloads) > 0 {
		if s, ok := sink.(PayloadSink); ok {
			return s.AppendWith(events, payloads)
		}
	}
	return sink.Append(events)
}

// split takes payloads out of the events.
func (h *Run) split() {
	if slices.ContainsFunc(h.Events, func(e reel.Event) bool { return isPayload(e.Word) }) {
		var p Payloads
		h.Events, h.Payloads = p.Split(h.Events)
	}
}
