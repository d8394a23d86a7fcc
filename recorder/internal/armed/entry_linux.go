package armed

import (
	"slices"

	"github.com/callreel/callreel/reel"
)

// addEntries adds the entries of the calls that a dump is made for where the rings hold them no more: a call that takes long is just one
// in which a thread may overwrite all that it has.
func (t *threadRuns) addEntries(c *cutEvents, causes []cause) error {
	for _, x := range causes {
		if x.function != 0 && x.tid != 0 && x.tid == t.nstid && (t.end == 0 || int64(t.end-x.to) >= 0) {
			if err := c.addEntry(x.from, x.sp, x.function, t.ids); err != nil {
				return err
			}
		}
	}
	return nil
}

// addEntry adds an entry at a time behind it, if it isn't there. Others keep their order. ids are the target's IDs of functions by the store's.
func (c *cutEvents) addEntry(at uint64, sp, function uint32, ids []uint32) error {
	there := false
	// seen looks at the events up to that time, and returns how many they are.
	seen := func(events []reel.Event) int {
		for i, e := range events {
			switch {
			case int64(e.Time-at) > 0:
				return i
			case !e.IsExit() && e.SP == sp && e.ID() == function:
				there = true
			case e.SP >= sp:
				there = false
			}
		}
		return len(events)
	}
	entry := reel.Entry(at, sp, function)
	n := seen(c.open)
	if n < len(c.open) {
		if !there {
			c.open = slices.Insert(c.open, n, entry)
			c.movePayloads(0, n)
		}
		return nil
	}
	part, n := 0, 0
	for ; part < len(c.events); part++ {
		if h := c.chunk(part); h != nil {
			if int64(h.Last()-at) <= 0 && h.Above < sp {
				continue // nothing of it is about that call
			}
			run, err := h.Run(ids, nil)
			if err != nil {
				return err
			}
			if n = seen(run.Events); n == len(run.Events) {
				continue
			}
			if !there && part+n > 0 { // it is put in between
				c.events[part], c.payloads[part+1], c.chunks[part] = run.Events, run.Payloads, nil
			}
			break
		}
		if n = seen(c.events[part]); n < len(c.events[part]) {
			break
		}
	}
	switch {
	case there:
	case part == 0 && n == 0:
		c.open = append(c.open, entry)
	case part == len(c.events):
		c.events = append(c.events, []reel.Event{entry})
		c.payloads = append(c.payloads, nil)
	default:
		c.events[part] = slices.Insert(slices.Clone(c.events[part]), n, entry) // the clone: what is behind it is the next chunk's
		c.movePayloads(part+1, n)
	}
	return nil
}

// movePayloads makes payloads of a part's events from n on those of the events behind.
func (c *cutEvents) movePayloads(part, n int) {
	if part >= len(c.payloads) {
		return
	}
	for i := range c.payloads[part] {
		if p := &c.payloads[part][i]; p.Event >= n {
			p.Event++
		}
	}
}
