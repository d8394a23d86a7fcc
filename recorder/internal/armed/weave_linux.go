package armed

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/overdue"
	"github.com/callreel/callreel/recorder/internal/past"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// weaver puts what was seen of a thread between its events. Parts of them that the store has are read for that only where something was seen.
type weaver struct {
	t       *threadRuns
	c       *cutEvents
	silence overdue.Silence
	open    []reel.Event // calls that are open, outermost first
}

// weave does so for all of a dump. The looks are in order of time.
func (t *threadRuns) weave(c *cutEvents, win window, looks []overdue.Look) error {
	looks = slices.DeleteFunc(looks, func(l overdue.Look) bool {
		return slices.ContainsFunc(c.missing, func(m window) bool { return m.from <= l.Tick && l.Tick <= m.to })
	})
	if len(looks) == 0 {
		return nil
	}
	w := weaver{t: t, c: c, open: slices.Clone(c.open)}
	for i := range c.events {
		next := win.to
		if i+1 < len(c.events) {
			next = c.first(i + 1)
		}
		n := 0
		for n < len(looks) && looks[n].Tick <= next {
			n++
		}
		here := looks[:n]
		looks = looks[n:]
		if len(here) == 0 && !w.silence.Around() {
			w.pass(i)
			continue
		}
		if err := w.part(i, here, next); err != nil {
			return err
		}
	}
	return nil
}

// first is the tick of the first event of a part.
func (c *cutEvents) first(i int) uint64 {
	if h := c.chunk(i); h != nil {
		return h.First()
	}
	return c.events[i][0].Time
}

// pass goes by a part in which nothing was seen.
func (w *weaver) pass(i int) {
	h := w.c.chunk(i)
	if h == nil {
		w.replay(w.c.events[i])
		return
	}
	open := make([]past.Open, len(w.open))
	for k, e := range w.open {
		open[k].Event = e
	}
	w.open = w.open[:0]
	for _, o := range h.After(open) {
		w.open = append(w.open, o.Event)
	}
}

func (w *weaver) replay(events []reel.Event) {
	for _, e := range events {
		w.open = ofThreads{}.replay(w.open, e)
	}
}

// part puts looks into a part. Those that are behind its events come before the next part's first, at next.
func (w *weaver) part(i int, looks []overdue.Look, next uint64) error {
	c := w.c
	events, payloads := c.events[i], c.payloads[i+1]
	if h := c.chunk(i); h != nil {
		run, err := h.Run(w.t.ids, nil)
		if err != nil {
			return err
		}
		events, payloads = run.Events, run.Payloads
	}
	var out []reel.Event
	var with []ring.Payload
	take := func(got []reel.Event, carried []ring.Payload) {
		for _, p := range carried {
			with = append(with, ring.Payload{Event: len(out) + p.Event, Data: p.Data})
		}
		out = append(out, got...)
	}
	from := 0
	until := func(n int) {
		if n > from {
			take(w.silence.Next(events[from:n], ring.Within(payloads, from, n), events[from].Time, events[n-1].Time))
			w.replay(events[from:n])
			from = n
		}
	}
	for _, l := range looks {
		n := from
		for n < len(events) && events[n].Time <= l.Tick {
			n++
		}
		if n == 0 {
			continue // nothing is known of what is before
		}
		until(n)
		if inner := len(w.open) - w.silence.Held(); inner > 0 { // what is around that has come before it
			sp := w.open[inner-1].SP
			l.Calls = slices.DeleteFunc(l.Calls, func(call overdue.Call) bool { return int32(call.SP-sp) >= 0 })
		}
		w.silence.Heard(l)
	}
	until(len(events))
	take(w.silence.Next(nil, nil, next, w.silence.Last))
	c.events[i], c.payloads[i+1] = out, with
	if i < len(c.chunks) {
		c.chunks[i] = nil
	}
	return nil
}
