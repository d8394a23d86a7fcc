package armed

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/past"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// cutEvents is what a dump has of a thread.
type cutEvents struct {
	open    []reel.Event   // entries of calls that were open when the window began
	events  [][]reel.Event // within the window
	missing []window
	// payloads are those of the open calls, then those of each of events.
	payloads [][]ring.Payload
	// chunks are what of events is as the store has it: nil for what is in events itself, and behind its end.
	chunks []*past.Chunk
}

// chunk is what the store has in place of events[i], if it has.
func (c *cutEvents) chunk(i int) *past.Chunk {
	if i < 0 || i >= len(c.chunks) {
		return nil
	}
	return c.chunks[i]
}

// lacks notes that calls are missing, as far as that is in the window: the store may have gone on behind its end.
func (c *cutEvents) lacks(win window, from, to uint64) {
	if from, to = max(from, win.from), min(to, win.to); from < to {
		c.missing = append(c.missing, window{from: from, to: to})
	}
}

// cut finds a thread's part of a window.
func (t *threadRuns) cut(win window, calls calls) (cutEvents, error) {
	var c cutEvents
	next := uint32(0) // the number that the next chunk has if nothing is missing
	last := uint64(0) // up to when all is known
	before := map[reel.Event][]byte{}
	c.payloads = [][]ring.Payload{nil}
	setOpen := func(open []past.Open) {
		c.open = c.open[:0]
		for _, o := range open {
			if c.open = append(c.open, o.Event); o.Payload != nil {
				before[o.Event] = o.Payload
			}
		}
	}
	found := func(seq uint32, from uint64) {
		if seq != next {
			c.open = c.open[:0]
			c.lacks(win, last, from)
		}
	}
	addRun := func(h *ring.Run) {
		k := 0
		for k < len(h.Events) && h.Events[k].Time < win.from {
			c.open = calls.replay(c.open, h.Events[k])
			k++
		}
		for _, p := range h.Payloads {
			if p.Event < k {
				before[h.Events[p.Event]] = p.Data
			}
		}
		end := len(h.Events)
		for end > k && h.Events[end-1].Time > win.to {
			end--
		}
		if k < end {
			c.events = append(c.events, h.Events[k:end])
			c.payloads = append(c.payloads, ring.Within(h.Payloads, k, end))
			c.chunks = append(c.chunks, nil)
		}
	}
	open, known := t.continues()
	if known {
		next, last = t.base.Next, t.base.To
		c.lacks(win, win.from, last)
		setOpen(open)
	}
	for _, h := range t.chunks {
		found(h.Seq, h.From)
		next, last = h.Next, h.To
		switch {
		case h.Events() == 0:
		case h.Last() < win.from:
			open = h.After(open)
			setOpen(open)
		case h.First() > win.to:
		case h.First() >= win.from && h.Last() <= win.to:
			c.events, c.payloads, c.chunks = append(c.events, nil), append(c.payloads, nil), append(c.chunks, h)
		default:
			run, err := h.Run(t.ids, nil)
			if err != nil {
				return c, err
			}
			addRun(&run)
		}
	}
	for i := range t.runs {
		h := &t.runs[i]
		found(h.Seq, h.From)
		next, last = h.Seq+1, h.To
		addRun(h)
	}
	c.open = slices.Clone(c.open)
	for i, e := range c.open {
		if data := before[e]; data != nil {
			c.payloads[0] = append(c.payloads[0], ring.Payload{Event: i, Data: data})
		}
	}
	return c, nil
}

// continues says whether what there is of the thread comes behind what the store has dropped, and which calls were open then.
func (t *threadRuns) continues() (open []past.Open, yes bool) {
	if t.base.To == 0 || t.base.Next == 0 {
		return nil, false
	}
	switch {
	case len(t.chunks) > 0:
		yes = t.chunks[0].Seq == t.base.Next
	case len(t.runs) > 0:
		yes = t.runs[0].Seq == t.base.Next
	}
	if !yes {
		return nil, false
	}
	return t.base.Open, true
}

// calls is how calls follow one another on a thread: they are its own, or those of the goroutines that take turns on it.
type calls interface {
	// replay adds an event to the open calls' entries, outermost first.
	replay(open []reel.Event, e reel.Event) []reel.Event
	// thread is the thread of an open call by what stubs have written of it, 0 if that is none.
	thread(ctx uint64) int
	// addEntries adds the entries of the calls that a dump is made for where the rings hold them no more.
	addEntries(t *threadRuns, c *cutEvents, causes []cause) error
}

func callsOf(t *target.Target) calls {
	if t.Go != nil {
		return ofGoroutines{}
	}
	return ofThreads{}
}

// ofThreads are the calls of programs whose threads call.
type ofThreads struct{}

func (ofThreads) replay(open []reel.Event, e reel.Event) []reel.Event {
	n := len(open)
	for n > 0 && (open[n-1].SP < e.SP || open[n-1].SP == e.SP && !e.IsExit()) {
		n--
	}
	switch {
	case !e.IsExit():
		return append(open[:n], e)
	case n > 0 && open[n-1].SP == e.SP && open[n-1].ID() == e.ID():
		n--
	}
	return open[:n]
}

func (ofThreads) thread(ctx uint64) int {
	if ctx >= ring.MaxTID {
		return 0
	}
	return int(ctx)
}

func (ofThreads) addEntries(t *threadRuns, c *cutEvents, causes []cause) error {
	return t.addEntries(c, causes)
}

// ofGoroutines are those of Go programs. Which goroutine it is stands in the events, and it isn't known whose turn it was when events were
// overwritten.
type ofGoroutines struct{}

// replay keeps which goroutine it is.
func (ofGoroutines) replay(open []reel.Event, e reel.Event) []reel.Event {
	if _, isSwitch := e.Goroutine(); isSwitch {
		return append(open[:0], e)
	}
	return open
}

func (ofGoroutines) thread(uint64) int { return 0 }

func (ofGoroutines) addEntries(*threadRuns, *cutEvents, []cause) error { return nil }
