package export

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/callreel/callreel/reel"
)

// maxMarks is how many triggers, and how many missing stretches, of a dump are exported.
const maxMarks = 1000

// placed are the triggers of a dump that are calls.
type placed struct {
	dump  reel.Dump
	calls map[uint32][]int // indices of triggers whose calls are still to end, by function, in order of their starts
	told  map[int]bool
}

// newPlaced returns what is to be told of a dump, nil if the reel is none.
func newPlaced(f *reel.File) *placed {
	d, ok := f.Dump()
	if !ok {
		return nil
	}
	d.Triggers, d.Missing = d.Triggers[:min(len(d.Triggers), maxMarks)], d.Missing[:min(len(d.Missing), maxMarks)]
	p := &placed{dump: d, calls: map[uint32][]int{}, told: map[int]bool{}}
	for i := range d.Triggers {
		if t := &d.Triggers[i]; t.Function != 0 {
			p.calls[t.Function] = append(p.calls[t.Function], i)
		}
	}
	for _, list := range p.calls {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(d.Triggers[a].Start, d.Triggers[b].Start) })
	}
	return p
}

// of returns the trigger that a call is, which ends now; nil if it is none. The recorder may have read the clock a little behind the
// entry, so the call is the one with its stack pointer that was open then.
func (p *placed) of(s *strand, c *reel.Call) *reel.Trigger {
	list := p.calls[c.Func]
	if len(list) == 0 {
		return nil
	}
	at, _ := slices.BinarySearchFunc(list, c.Start, func(i int, start uint64) int { return cmp.Compare(p.dump.Triggers[i].Start, start) })
	for _, i := range list[at:] {
		t := &p.dump.Triggers[i]
		if t.Start > c.End {
			return nil
		}
		if p.told[i] || t.SP != 0 && t.SP != c.SP || s.goroutine == 0 && t.Thread != s.thread.Key {
			continue
		}
		p.told[i] = true
		return t
	}
	return nil
}

// trigger is the note of one.
func (w *walk) trigger(t *reel.Trigger) note {
	return note{kind: noteTrigger, trigger: t, nanoseconds: w.f.Clock().Nanoseconds(w.placed.dump.Ticks(t))}
}

// apart is a note of no call: at a time, of a thread, whose ID is 0 if it isn't known.
type apart struct {
	at  int64
	tid int
	n   note
}

// unplaced gives what is of no call in the reel, or of none at all, what is missing, and what was off, in order of time.
func (w *walk) unplaced(give func(at int64, tid int, n note)) {
	marks := append(w.ofDump(), w.offs()...)
	slices.SortStableFunc(marks, func(a, b apart) int { return cmp.Compare(a.at, b.at) })
	last := int64(-1)
	for _, m := range marks {
		last = max(m.at, last+w.gap)
		give(last, m.tid, m.n)
	}
}

// ofDump are those of a dump.
func (w *walk) ofDump() (marks []apart) {
	if w.placed == nil {
		return nil
	}
	tids := map[uint32]int{}
	for _, t := range w.f.Threads() {
		tids[t.Key] = t.TID
	}
	at := func(tick uint64) int64 { return max(0, w.nanoseconds(max(tick, w.f.FirstTick()))) }
	d := &w.placed.dump
	for i := range d.Triggers {
		t := &d.Triggers[i]
		tick := t.End
		if tick == 0 && !t.Open() {
			tick = t.Start
		}
		if tick == 0 {
			tick = d.To
		}
		if !w.placed.told[i] {
			marks = append(marks, apart{at(tick), tids[t.Thread], w.trigger(t)})
		}
	}
	for _, m := range d.Missing {
		to := min(m.To, w.f.LastTick())
		marks = append(marks, apart{at(m.From), tids[m.Thread], note{kind: noteMissing, nanoseconds: w.f.Clock().Nanoseconds(to - min(m.From, to))}})
	}
	return marks
}

// triggerName is what a trigger is called.
func triggerName(t *reel.Trigger) string {
	what := t.Condition
	if what == "" {
		what = t.Kind.String()
	}
	return "trigger: " + cut(what, maxName)
}

// dumpComments says what a dump was made for, and what is missing, in words.
func dumpComments(f *reel.File, name func(id uint32) string, say func(format string, args ...any)) {
	p := newPlaced(f)
	if p == nil {
		return
	}
	ns := f.Clock().Nanoseconds
	say("a dump of the last %d ns", ns(p.dump.To-min(p.dump.From, p.dump.To)))
	threads := map[uint32]reel.Thread{}
	for _, t := range f.Threads() {
		threads[t.Key] = t
	}
	for i := range p.dump.Triggers {
		t := &p.dump.Triggers[i]
		text := triggerName(t)
		if t.Function != 0 {
			took := "took"
			if t.Open() {
				took = "had not returned after"
			}
			text += fmt.Sprintf(": %s %s %d ns", name(t.Function), took, ns(p.dump.Ticks(t)))
		}
		if th := threads[t.Thread]; th.TID != 0 {
			text += fmt.Sprintf(", thread %d %s", th.TID, cut(th.Name, maxName))
		}
		if t.Detail != "" {
			text += ", " + cut(t.Detail, maxName)
		}
		say("%s", text)
	}
	for _, m := range p.dump.Missing {
		to := min(m.To, f.LastTick())
		say("missing: %d ns of thread %d (0: all)", ns(to-min(m.From, to)), threads[m.Thread].TID)
	}
}
