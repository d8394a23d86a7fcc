package armed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// dump copies the rings and writes the last moments into the next file of the folder. It says whether there is one: not where what it
// was to be made for turns out to be no reason.
func (a *Loop) dump(causes []cause, keep time.Duration) (made bool, err error) {
	var d Dumped
	return a.dumpTo(causes, keep, &d)
}

func (a *Loop) dumpTo(causes []cause, keep time.Duration, told *Dumped) (made bool, err error) {
	from := a.frozenSince()
	a.snapshots.Freeze()
	to := ring.Ticks()
	lossy := a.dropping(nil) // surely all that have dropped a call by then
	held, err := a.snapshots.Take(to)
	a.snapshots.Thaw()
	frozen := time.Duration(float64(ring.Ticks()-from) / float64(a.TicksPerSecond) * float64(time.Second))
	if starved := a.starved(); len(starved) > 0 {
		a.gaps = append(a.gaps, gap{max(a.thawed, a.Began), to, starved})
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
		w.to = lastEvent(threads, a.Began)
		moment = w.to
	case causes[0].to != 0:
		moment = min(moment, causes[0].to)
	}
	w.from = max(moment-min(ring.TicksOf(keep, a.TicksPerSecond), moment), a.Began)
	told.Frozen, told.Reason = frozen, causes[0].condition
	if causes[0].detail != "" {
		told.Reason += ": " + causes[0].detail
	}
	if told.File, err = a.write(w, threads, causes, told); err != nil {
		return false, fmt.Errorf("callreel: %w", err)
	}
	a.Dumped(*told)
	return true, nil
}

// lastEvent is when the last event was written, or least if there is none later.
func lastEvent(threads []*threadRuns, least uint64) uint64 {
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
func (a *Loop) starved() []int {
	var tids []int
	for _, nstid := range a.dropping(nil) {
		if !a.snapshots.HasChunk(nstid) {
			tids = append(tids, nstid)
		}
	}
	return tids
}

// dropping appends the threads that have dropped calls since the rings were last let go.
func (a *Loop) dropping(to []int) []int {
	for nstid, t := range a.threads {
		if a.snapshots.Dropped(nstid) != t.dropped {
			to = append(to, nstid)
		}
	}
	return to
}

// noteGap notes that the rings were frozen from a moment up to now, and which threads have lost calls by that.
func (a *Loop) noteGap(from uint64) {
	g := gap{from: from, to: ring.Ticks()}
	a.thawed = g.to
	for nstid, t := range a.threads {
		if n := a.snapshots.Dropped(nstid); n != t.dropped {
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

// threadRuns is a thread with what the rings hold of it, oldest first.
type threadRuns struct {
	*thread
	runs []ring.Run
	key  uint32 // in the reel
	w    *reel.ThreadWriter
	// since is when the first call in the dump began, if that was before the window; else 0.
	since uint64
	kept  []waitcalls.Kept // calls that took long
}

// assign finds out whose the chunks are: thread IDs are used again.
func (a *Loop) assign(held []ring.Run) []*threadRuns {
	var all []*threadRuns
	of, nobody := map[*thread]*threadRuns{}, map[int]*thread{}
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
				t = &thread{nstid: h.TID, tid: h.TID, pid: a.Target.PID()}
				nobody[h.TID] = t
			}
		}
		if of[t] == nil {
			of[t] = &threadRuns{thread: t}
			all = append(all, of[t])
		}
		of[t].runs = append(of[t].runs, h)
	}
	for _, t := range all {
		for _, h := range t.runs {
			ring.InOrder(h.Events)
		}
		a.Switches.PickRuns(t.runs)
	}
	return all
}

// stillOpen leaves out the open calls that are gone, by longjmp or an exception: their threads have been higher up in the stack since.
func (a *Loop) stillOpen(causes []cause, threads []*threadRuns) []cause {
	return slices.DeleteFunc(causes, func(c cause) bool {
		if c.open == nil {
			return false
		}
		for _, t := range threads {
			if t.nstid == c.tid && !c.span && t.unwoundSince(c) || c.tid == 0 && t.goroutineUnwoundSince(c) {
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
}

// otherStack is how far above a frame a stack pointer is that of another stack, of a coroutine or for signals, in bytes.
const otherStack = 8 << 20

// unwoundSince says whether the thread has been above a call's frame since it was entered.
func (t *threadRuns) unwoundSince(c cause) bool {
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

// goroutineUnwoundSince says whether, on this thread, the goroutine has been above a call's frame since it was entered.
func (t *threadRuns) goroutineUnwoundSince(c cause) bool {
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
func (a *Loop) write(win window, threads []*threadRuns, causes []cause, told *Dumped) (name string, err error) {
	folder, err := a.Folder.open()
	if err != nil {
		return "", err
	}
	f, err := folder.BeginNumbered(dumpName(a.number+1), a.Folder.Mode)
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
func (a *Loop) writeTo(f dumpFile, win window, threads []*threadRuns, causes []cause, told *Dumped) error {
	w, err := a.Catalog.create(f)
	if err != nil {
		return err
	}
	names := a.Functions.Anew(w)
	d := reel.Dump{From: win.from, To: win.to}
	var said []saidBy
	err = a.writeThreads(w, win, threads, causes, names, &d, &said)
	if err == nil {
		err = a.writeStates(w, win, threads)
	}
	if err == nil {
		for _, c := range causes {
			d.Triggers = append(d.Triggers, c.trigger(threads, names, a.gaps))
		}
		a.missingByFreezing(win, threads, &d)
		a.pair()
		for _, p := range a.pairs {
			err = errors.Join(err, w.ClockPair(p.Tick, p.UnixNS))
		}
		for _, p := range append(ownPauses(said, win), a.Pauses(win.from, win.to)...) {
			err = errors.Join(err, w.Pause(p))
		}
		err = errors.Join(err, a.writeOffs(w, win, names), w.Dump(d))
	}
	told.Events, told.Missing = w.Stats().Events, len(d.Missing)
	return errors.Join(err, w.Close())
}

// writeThreads writes the events of all threads, and adds to said what they have said to the recording.
func (a *Loop) writeThreads(w *reel.Writer, win window, threads []*threadRuns, causes []cause, names *tables.Late, d *reel.Dump, said *[]saidBy) error {
	values, marks := a.Values.In(w), a.Marks(w)
	for _, t := range threads {
		about := reel.Thread{TID: t.tid, Process: t.pid, StartTime: t.start, Name: t.name}
		if t.end == 0 {
			a.readName(t.thread)
			about.Name = t.name
		}
		cut := t.cut(win, a.calls)
		a.calls.addEntries(t, &cut, causes)
		passed, payloads := t.marks(win)
		if len(cut.events) == 0 && len(cut.open) == 0 && len(passed) == 0 {
			continue
		}
		var err error
		if t.w, err = w.Thread(about); err != nil {
			return err
		}
		t.key = t.w.Key()
		if len(cut.open) > 0 {
			t.since = cut.open[0].Time
		}
		for _, m := range cut.missing {
			d.Missing = append(d.Missing, reel.Missing{Thread: t.key, From: m.from, To: m.to})
		}
		goroutine := uint64(0)
		list, err := marks.Decode(passed, payloads, &goroutine, func(s markers.Said) { *said = append(*said, saidBy{t.pid, s}) })
		if err == nil && len(list) > 0 {
			err = t.w.Marks(list)
		}
		if err != nil {
			return err
		}
		if a.Min > 0 {
			if err := t.writeLong(&cut, names, a.Min); err != nil {
				return err
			}
			cut.open, cut.events = nil, nil
		}
		for i, part := range append([][]reel.Event{cut.open}, cut.events...) {
			if a.WaitCalls != nil {
				var kept []waitcalls.Kept
				kept, cut.payloads[i] = a.WaitCalls.Take(part, cut.payloads[i])
				t.kept = append(t.kept, kept...)
			}
			sets, describe := values.Decode(part, cut.payloads[i])
			if err := names.Translate(part); err != nil {
				return err
			}
			if len(sets) > 0 {
				if err := describe(part); err != nil {
					return err
				}
			}
			if err := t.w.AppendWith(part, sets); err != nil {
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

// marks are the passings of markers in a window, in order of time, with what they carry.
func (t *threadRuns) marks(win window) (list []reel.Event, payloads []ring.Payload) {
	last := win.from
	next, who := uint32(0), reel.Event{} // what said last which goroutine goes on
	for _, h := range t.runs {
		if h.Seq != next && who.Word != 0 { // nobody knows any more
			who = reel.Switch(last, 0)
			list = append(list, who)
		}
		next = h.Seq + 1
		ring.InOrder(h.Marks)
		with := h.MarkPayloads
		for i, e := range h.Marks {
			for len(with) > 0 && with[0].Event < i {
				with = with[1:]
			}
			_, isSwitch := e.Goroutine()
			if isSwitch {
				who = e
			}
			if e.Time < win.from {
				continue
			}
			if len(list) == 0 && who.Word != 0 && !isSwitch {
				list = append(list, who)
			}
			if len(with) > 0 && with[0].Event == i {
				payloads = append(payloads, ring.Payload{Event: len(list), Data: with[0].Data})
			}
			e.Time = max(e.Time, last) // a signal handler may have come in between
			last = e.Time
			list = append(list, e)
		}
	}
	return list, payloads
}

// writeLong writes a thread's events without the calls that are shorter than so many ticks, which its stubs could not take back.
func (t *threadRuns) writeLong(cut *cutEvents, names *tables.Late, ticks uint64) error {
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

// missingByFreezing adds the times in which calls were dropped.
func (a *Loop) missingByFreezing(win window, threads []*threadRuns, d *reel.Dump) {
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
func (c cause) trigger(threads []*threadRuns, names *tables.Late, gaps []gap) reel.Trigger {
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
func (h *threadRuns) exactly(c cause, id uint32, t *reel.Trigger, gaps []gap) {
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
func (h *threadRuns) lostWithin(from, to uint64, gaps []gap) bool {
	return slices.ContainsFunc(gaps, func(g gap) bool {
		return int64(g.to-from) > 0 && int64(to-g.from) > 0 && slices.Contains(g.tids, h.nstid)
	})
}
