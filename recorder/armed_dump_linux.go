package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/recorder/internal/capture"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/reel"
)

// dump copies the rings and writes the last moments into the next file of the folder. It says whether there is one: not where what it
// was to be made for turns out to be no reason.
func (a *armed) dump(causes []cause, keep time.Duration) (made bool, err error) {
	var d Dumped
	return a.dumpTo(causes, keep, &d)
}

func (a *armed) dumpTo(causes []cause, keep time.Duration, told *Dumped) (made bool, err error) {
	from := a.frozenSince()
	a.keeper.Freeze()
	to := ring.Ticks()
	lossy := a.dropping(nil) // surely all that have dropped a call by then
	held, err := a.keeper.Copy(to)
	a.keeper.Thaw()
	frozen := time.Duration(float64(ring.Ticks()-from) / float64(a.r.set.TicksPerSecond) * float64(time.Second))
	if starved := a.starved(); len(starved) > 0 {
		a.gaps = append(a.gaps, gap{max(a.thawed, a.began), to, starved})
	}
	if len(lossy) > 0 {
		a.gaps = append(a.gaps, gap{from, to, lossy})
	}
	a.noteGap(to)
	if err != nil {
		return false, err
	}
	threads := a.assign(held)
	if causes = a.stillOpen(causes, threads); len(causes) == 0 {
		return false, nil
	}
	w := window{to: to}
	moment := to // that the last moments are before
	switch {
	case causes[0].kind == reel.TriggerEnd:
		w.to = lastEvent(threads, a.began)
		moment = w.to
	case causes[0].to != 0:
		moment = min(moment, causes[0].to)
	}
	w.from = max(moment-min(ring.TicksOf(keep, a.r.set.TicksPerSecond), moment), a.began)
	told.Frozen, told.Reason = frozen, causes[0].condition
	if causes[0].detail != "" {
		told.Reason += ": " + causes[0].detail
	}
	if told.File, err = a.write(w, threads, causes, told); err != nil {
		return false, fmt.Errorf("callreel: %w", err)
	}
	if a.o.Dumped != nil {
		a.o.Dumped(*told)
	}
	return true, nil
}

// lastEvent is when the last event was written, or least if there is none later.
func lastEvent(threads []*heldRuns, least uint64) uint64 {
	for _, t := range threads {
		for _, h := range slices.Backward(t.runs) {
			if n := len(h.Events); n > 0 {
				least = max(least, h.Events[n-1].Time)
				break
			}
		}
	}
	return least
}

// window is the time that a dump is of, in ticks.
type window struct{ from, to uint64 }

// starved returns the threads that have dropped calls since the rings were last let go because there was no chunk for them.
func (a *armed) starved() []int {
	var tids []int
	for _, nstid := range a.dropping(nil) {
		if !a.keeper.HasChunk(nstid) {
			tids = append(tids, nstid)
		}
	}
	return tids
}

// dropping appends the threads that have dropped calls since the rings were last let go.
func (a *armed) dropping(to []int) []int {
	for nstid, t := range a.threads {
		if a.keeper.Dropped(nstid) != t.dropped {
			to = append(to, nstid)
		}
	}
	return to
}

// noteGap notes that the rings were frozen from a moment up to now, and which threads have lost calls by that.
func (a *armed) noteGap(from uint64) {
	g := gap{from: from, to: ring.Ticks()}
	a.thawed = g.to
	for nstid, t := range a.threads {
		if n := a.keeper.Dropped(nstid); n != t.dropped {
			t.dropped = n
			g.tids = append(g.tids, nstid)
		}
	}
	if len(g.tids) > 0 {
		a.gaps = append(a.gaps, g)
		if len(a.gaps) > 1000 {
			a.gaps = slices.Delete(a.gaps, 0, 500)
		}
	}
}

// heldRuns is a thread with what the rings hold of it, oldest first.
type heldRuns struct {
	*heldThread
	runs []ring.Held
	key  uint32 // in the reel
	w    *reel.ThreadWriter
}

// assign finds out whose the chunks are: thread IDs are used again.
func (a *armed) assign(held []ring.Held) []*heldRuns {
	var all []*heldRuns
	of, nobody := map[*heldThread]*heldRuns{}, map[int]*heldThread{}
	for _, h := range held {
		t := a.threads[h.TID]
		for _, e := range a.ended {
			if e.nstid == h.TID && int64(e.end-h.From) >= 0 && (t == nil || int64(e.end-t.end) < 0 || t.end == 0) {
				t = e
				break
			}
		}
		if t == nil { // it has written nothing but this, and is not met yet
			a.meet(h.TID, 0, "")
			t = a.threads[h.TID]
		}
		if t == nil { // nor is it there
			if t = nobody[h.TID]; t == nil {
				t = &heldThread{nstid: h.TID, tid: h.TID, pid: a.r.s.Process.Pid()}
				nobody[h.TID] = t
			}
		}
		if of[t] == nil {
			of[t] = &heldRuns{heldThread: t}
			all = append(all, of[t])
		}
		of[t].runs = append(of[t].runs, h)
	}
	for _, t := range all {
		for _, h := range t.runs {
			ring.InOrder(h.Events)
		}
		a.r.switches.pickHeld(t.runs)
	}
	return all
}

// stillOpen leaves out the open calls that are gone, by longjmp or an exception: their threads have been higher up in the stack since.
func (a *armed) stillOpen(causes []cause, threads []*heldRuns) []cause {
	return slices.DeleteFunc(causes, func(c cause) bool {
		if c.open == nil {
			return false
		}
		for _, t := range threads {
			if t.nstid == c.tid && t.leftSince(c) || c.tid == 0 && t.goroutineLeftSince(c) {
				a.watches.Forget(*c.open)
				a.r.result.Triggers.Fired--
				a.r.result.Triggers.Suppressed--
				return true
			}
		}
		if !a.watches.Take(*c.open) {
			a.r.result.Triggers.Fired-- // it has just returned, and fired by itself if it was to
			a.r.result.Triggers.Suppressed--
			return true
		}
		return false
	})
}

// otherStack is how far above a frame a stack pointer is that of another stack, of a coroutine or for signals, in bytes.
const otherStack = 8 << 20

// leftSince says whether the thread has been above a call's frame since it was entered.
func (t *heldRuns) leftSince(c cause) bool {
	for _, h := range slices.Backward(t.runs) {
		for _, e := range slices.Backward(h.Events) {
			if int64(e.Time-c.from) < 0 {
				return false
			}
			if e.SP == c.sp && e.ID() != c.function || e.SP > c.sp && e.SP-c.sp < otherStack {
				return true
			}
		}
	}
	return false
}

// goroutineLeftSince says whether, on this thread, the goroutine has been above a call's frame since it was entered.
func (t *heldRuns) goroutineLeftSince(c cause) bool {
	runs := false // the goroutine
	for _, h := range t.runs {
		for _, e := range h.Events {
			if id, isSwitch := e.Goroutine(); isSwitch {
				runs = id == c.goroutine
			} else if runs && int64(e.Time-c.from) > 0 && (e.SP > c.sp || e.SP == c.sp && e.ID() != c.function) {
				return true
			}
		}
	}
	return false
}

// dumpFile is a dump that is being written. Closing leaves it to get its name.
type dumpFile struct{ *outfile.File }

func (dumpFile) Close() error { return nil }

// write writes a dump and gives it the first number that no other has: there may be several recorders with one folder.
func (a *armed) write(win window, threads []*heldRuns, causes []cause, told *Dumped) (name string, err error) {
	folder, err := a.r.folder()
	if err != nil {
		return "", err
	}
	f, err := folder.BeginNumbered(dumpName(a.number+1), a.r.opt.Mode)
	if err != nil {
		return "", err
	}
	if err := a.writeTo(dumpFile{f}, win, threads, causes, told); err != nil {
		return "", errors.Join(err, f.Abandon())
	}
	n, err := f.FinishNumbered(a.number+1, dumpName, a.old)
	if err != nil {
		return "", err
	}
	a.number = n
	return f.Name(), nil
}

// writeTo writes a dump.
func (a *armed) writeTo(f dumpFile, win window, threads []*heldRuns, causes []cause, told *Dumped) error {
	w, err := a.r.catalog.create(f)
	if err != nil {
		return err
	}
	names := a.r.late.Anew(w)
	d := reel.Dump{From: win.from, To: win.to}
	err = a.writeThreads(w, win, threads, causes, names, &d)
	if err == nil {
		for _, c := range causes {
			d.Triggers = append(d.Triggers, c.trigger(threads, names, a.gaps))
		}
		a.missingByFreezing(win, threads, &d)
		a.pair()
		for _, p := range a.pairs {
			err = errors.Join(err, w.ClockPair(p.Tick, p.UnixNS))
		}
		err = errors.Join(err, w.Dump(d))
	}
	told.Events, told.Missing = w.Stats().Events, len(d.Missing)
	return errors.Join(err, w.Close())
}

// writeThreads writes the events of all threads.
func (a *armed) writeThreads(w *reel.Writer, win window, threads []*heldRuns, causes []cause, names *tables.Late, d *reel.Dump) error {
	told := capture.Told{}
	for _, t := range threads {
		about := reel.Thread{TID: t.tid, Process: t.pid, StartTime: t.start, Name: t.name}
		if t.end == 0 {
			a.readName(t.heldThread)
			about.Name = t.name
		}
		cut := t.cut(win, a.r.s.Go != nil)
		if a.r.s.Go == nil {
			t.addEntries(&cut, causes)
		}
		if len(cut.events) == 0 && len(cut.open) == 0 {
			continue
		}
		var err error
		if t.w, err = w.Thread(about); err != nil {
			return err
		}
		t.key = t.w.Key()
		for _, m := range cut.missing {
			d.Missing = append(d.Missing, reel.Missing{Thread: t.key, From: m.from, To: m.to})
		}
		if a.r.set.Min > 0 {
			if err := t.writeLong(&cut, names, a.r.set.Min); err != nil {
				return err
			}
			cut.open, cut.events = nil, nil
		}
		for i, part := range append([][]reel.Event{cut.open}, cut.events...) {
			values := a.r.captures.Decode(part, cut.payloads[i])
			if err := names.Translate(part); err != nil {
				return err
			}
			if err := values.Describe(w, told, part); err != nil {
				return err
			}
			if err := t.w.AppendWith(part, values.Sets); err != nil {
				return err
			}
		}
		if t.end != 0 {
			if err := t.w.End(t.seen); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeLong writes a thread's events without the calls that are shorter than so many ticks, which its stubs could not take back.
func (t *heldRuns) writeLong(cut *cutEvents, names *tables.Late, ticks uint64) error {
	f := ring.NewFilter(namedThread{t.w, names}, ticks)
	for _, part := range append([][]reel.Event{cut.open}, cut.events...) {
		if err := f.Append(part); err != nil {
			return err
		}
	}
	return f.End()
}

// namedThread is a thread of a reel that gets events with the recording's function IDs.
type namedThread struct {
	*reel.ThreadWriter
	names *tables.Late
}

func (n namedThread) Append(events []reel.Event) error {
	if err := n.names.Translate(events); err != nil {
		return err
	}
	return n.ThreadWriter.Append(events)
}

// cutEvents is what a dump has of a thread.
type cutEvents struct {
	open    []reel.Event   // entries of calls that were open when the window began
	events  [][]reel.Event // within the window
	missing []window
	// payloads are those of the open calls, then those of each of events.
	payloads [][]ring.Payload
}

// cut finds a thread's part of a window.
func (t *heldRuns) cut(win window, goroutines bool) cutEvents {
	var c cutEvents
	next := uint32(0) // the number that the next chunk has if nothing is missing
	last := uint64(0) // up to when all is known
	before := map[reel.Event][]byte{}
	c.payloads = [][]ring.Payload{nil}
	for _, h := range t.runs {
		if h.Seq != next {
			c.open = c.open[:0]
			if from := max(last, win.from); int64(h.From-from) > 0 {
				c.missing = append(c.missing, window{from, h.From})
			}
		}
		next, last = h.Seq+1, h.To
		k := 0
		for k < len(h.Events) && h.Events[k].Time < win.from {
			c.open = replay(c.open, h.Events[k], goroutines)
			k++
		}
		for _, p := range h.Payloads {
			if p.Event < k {
				before[h.Events[p.Event]] = p.Data
			}
		}
		if k < len(h.Events) {
			c.events = append(c.events, h.Events[k:])
			c.payloads = append(c.payloads, ring.Within(h.Payloads, k, len(h.Events)))
		}
	}
	c.open = slices.Clone(c.open)
	for i, e := range c.open {
		if data := before[e]; data != nil {
			c.payloads[0] = append(c.payloads[0], ring.Payload{Event: i, Data: data})
		}
	}
	return c
}

// replay keeps the entries of the calls that are open, outermost first. Of goroutines it keeps which one it is.
func replay(open []reel.Event, e reel.Event, goroutines bool) []reel.Event {
	if goroutines {
		if _, isSwitch := e.Goroutine(); isSwitch {
			return append(open[:0], e)
		}
		return open
	}
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

// missingByFreezing adds the times in which calls were dropped.
func (a *armed) missingByFreezing(win window, threads []*heldRuns, d *reel.Dump) {
	keys := map[int]uint32{}
	for _, t := range threads {
		if t.key != 0 && t.end == 0 && keys[t.nstid] == 0 {
			keys[t.nstid] = t.key
		}
	}
	for _, g := range a.gaps {
		from, to := max(g.from, win.from), min(g.to, win.to)
		if int64(to-from) <= 0 {
			continue
		}
		some := false // threads that are not in the dump are one
		for _, tid := range g.tids {
			if key := keys[tid]; key != 0 {
				d.Missing = append(d.Missing, reel.Missing{Thread: key, From: from, To: to})
			} else if !some {
				some = true
				d.Missing = append(d.Missing, reel.Missing{From: from, To: to})
			}
		}
	}
	d.Missing = joined(d.Missing)
}

// joined makes one of the stretches of a thread that overlap, in the order of threads and times.
func joined(list []reel.Missing) []reel.Missing {
	slices.SortFunc(list, func(a, b reel.Missing) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.From, b.From))
	})
	var all []reel.Missing
	for _, m := range list {
		if n := len(all); n > 0 && all[n-1].Thread == m.Thread && m.From <= all[n-1].To {
			all[n-1].To = max(all[n-1].To, m.To)
			continue
		}
		all = append(all, m)
	}
	return all
}

// trigger is what the reel says of a cause. The events of the call say exactly when it was.
func (c cause) trigger(threads []*heldRuns, names *tables.Late, gaps []gap) reel.Trigger {
	t := reel.Trigger{Kind: c.kind, Condition: c.condition, Detail: c.detail, SP: c.sp, Start: c.from, End: c.to}
	for _, h := range threads {
		if h.nstid != c.tid || c.tid == 0 || h.end != 0 && int64(h.end-c.to) < 0 {
			continue
		}
		t.Thread = h.key
		if c.function != 0 {
			h.exactly(c, names.IDOf(c.function), &t, gaps)
		}
		break
	}
	if c.function != 0 {
		t.Function = names.IDOf(c.function)
	}
	return t
}

// exactly finds the call's events. Its entry is the thread's last event at or above its stack pointer before the clock was read for
// the trigger. Where that is another event, or calls are missing in between, the entry isn't there: an older one would be of another call.
func (h *heldRuns) exactly(c cause, id uint32, t *reel.Trigger, gaps []gap) {
	same := func(e reel.Event) bool { // events within the window have got the reel's IDs, those before it may have kept the recording's
		return e.SP == c.sp && (e.ID() == id || e.ID() == c.function)
	}
	for i, run := range slices.Backward(h.runs) {
		missing := i+1 < len(h.runs) && h.runs[i+1].Seq != run.Seq+1
		for _, e := range slices.Backward(run.Events) {
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

// lostWithin says whether the thread has dropped calls in a time.
func (h *heldRuns) lostWithin(from, to uint64, gaps []gap) bool {
	return slices.ContainsFunc(gaps, func(g gap) bool {
		return int64(g.to-from) > 0 && int64(to-g.from) > 0 && slices.Contains(g.tids, h.nstid)
	})
}
