package armed

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/past"
	"github.com/callreel/callreel/reel"
)

// stillOpen leaves out the open calls that are gone, by longjmp or an exception: their threads have been higher up in the stack since.
func (a *Loop) stillOpen(causes []cause, threads []*threadRuns) (still []cause, err error) {
	still = slices.DeleteFunc(causes, func(c cause) bool {
		if c.open == nil {
			return false
		}
		for _, t := range threads {
			unwound := false
			switch {
			case t.nstid == c.tid && !c.span:
				unwound, err = t.unwoundSince(c)
			case c.tid == 0:
				unwound, err = t.goroutineUnwoundSince(c)
			}
			if err != nil {
				return false
			}
			if unwound {
				a.predicates.Forget(*c.open)
				a.counts.Fired--
				a.counts.Suppressed--
				return true
			}
		}
		if !a.predicates.Take(*c.open) {
			a.counts.Fired-- // it has just returned, and fired by itself if it was to
			a.counts.Suppressed--
			return true
		}
		return false
	})
	return still, err
}

// otherStack is how far above a frame a stack pointer is that of another stack, of a coroutine or for signals, in bytes.
const otherStack = 8 << 20

// unwoundSince says whether the thread has been above a call's frame since it was entered.
func (t *threadRuns) unwoundSince(c cause) (yes bool, err error) {
	// within says whether the events show it, and all whether they are all later.
	within := func(events []reel.Event) (yes, all bool) {
		for _, e := range slices.Backward(events) {
			if int64(e.Time-c.from) < 0 {
				return false, false
			}
			if e.SP == c.sp && e.ID() != c.function || e.SP > c.sp && e.SP-c.sp < otherStack {
				return true, true
			}
		}
		return false, true
	}
	for _, h := range slices.Backward(t.runs) {
		if yes, all := within(h.Events); yes || !all {
			return yes, nil
		}
	}
	var buf []reel.Event
	for _, h := range slices.Backward(t.chunks) {
		switch {
		case h.Events() == 0:
			continue
		case int64(h.Last()-c.from) < 0:
			return false, nil
		case int64(h.First()-c.from) >= 0 && h.Above < c.sp:
			continue // it hasn't been above in that time
		}
		run, err := h.Run(t.ids, buf)
		if err != nil {
			return false, err
		}
		if yes, all := within(run.Events); yes || !all {
			return yes, nil
		}
		buf = run.Events
	}
	return false, nil
}

// goroutineUnwoundSince says whether, on this thread, the goroutine has been above a call's frame since it was entered.
func (t *threadRuns) goroutineUnwoundSince(c cause) (yes bool, err error) {
	runs := false // the goroutine
	within := func(events []reel.Event) bool {
		for _, e := range events {
			if id, isSwitch := e.Goroutine(); isSwitch {
				runs = id == c.goroutine
			} else if runs && int64(e.Time-c.from) > 0 && (e.SP > c.sp || e.SP == c.sp && e.ID() != c.function) {
				return true
			}
		}
		return false
	}
	opened := func(open []past.Open) {
		for _, o := range open {
			id, _ := o.Goroutine()
			runs = id == c.goroutine
		}
	}
	opened(t.base.Open)
	var buf []reel.Event
	for _, h := range t.chunks {
		if int64(h.Last()-c.from) < 0 {
			opened(h.Opens)
			continue
		}
		run, err := h.Run(t.ids, buf)
		if err != nil {
			return false, err
		}
		if within(run.Events) {
			return true, nil
		}
		buf = run.Events
	}
	for _, h := range t.runs {
		if within(h.Events) {
			return true, nil
		}
	}
	return false, nil
}

// stretch is what there is of a thread: the ring's chunks from seq up to next. Its events may be left out where nobody asks for them.
type stretch struct {
	seq, next uint32
	events    []reel.Event
}

// stretches are those of the thread, with the events around the beginning of a call.
func (h *threadRuns) stretches(from uint64) []stretch {
	all := make([]stretch, 0, len(h.chunks)+len(h.runs))
	at := 0 // the last that begins by then
	for i, c := range h.chunks {
		if c.Events() > 0 && int64(c.First()-from) <= 0 {
			at = i
		}
	}
	for i, c := range h.chunks {
		s := stretch{seq: c.Seq, next: c.Next}
		if i == at || i == at-1 {
			if run, err := c.Run(h.ids, nil); err == nil { // else it will be found out when it is written
				s.events = run.Events
			}
		}
		all = append(all, s)
	}
	for i := range h.runs {
		all = append(all, stretch{h.runs[i].Seq, h.runs[i].Seq + 1, h.runs[i].Events})
	}
	return all
}

// exactly finds the call's events. Its entry is the thread's last event at or above its stack pointer before the clock was read for
// the trigger. Where that is another event, or calls are missing in between, the entry isn't there: an older one would be of another call.
func (h *threadRuns) exactly(c cause, id uint32, t *reel.Trigger, gaps []gap) {
	same := func(e reel.Event) bool { // events within the window have got the reel's IDs, those before it may have kept the recording's
		return e.SP == c.sp && (e.ID() == id || e.ID() == c.function)
	}
	all := h.stretches(c.from)
	for i, run := range slices.Backward(all) {
		missing := i+1 < len(all) && all[i+1].seq != run.next
		for _, e := range slices.Backward(run.events) {
			before := int64(e.Time-c.from) <= 0
			switch {
			case before && (missing || h.lostWithin(e.Time, c.from, gaps)):
				return
			case same(e) && e.IsExit() && !before && c.to != 0 && int64(e.Time-c.to) <= 0:
				t.End = e.Time
			case before && same(e) && !e.IsExit():
				t.Start = e.Time
				return
			case before && (e.SP == c.sp || e.SP > c.sp && e.SP-c.sp < otherStack):
				return
			}
		}
	}
}
