package armed

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/past"
	"github.com/callreel/callreel/recorder/internal/ring"
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
	begun := time.Now()
	defer a.undisturbed()()
	end := a.Couple.begin(a)
	defer end()
	a.letGo()
	to := ring.Ticks()
	copied := a.Couple.ask(a, to)
	held, threads, err := a.take(to)
	defer a.compact.done(held)
	others := copied()
	defer release(others)
	if err != nil {
		return false, err
	}
	if causes, err = a.stillOpen(causes, threads); err != nil || len(causes) == 0 {
		return false, err
	}
	w := window{to: to, lost: held.lost}
	moment := to // that the last moments are before
	switch {
	case causes[0].kind == reel.TriggerEnd:
		moment = lastEvent(threads, a.Began)
		if len(others) == 0 { // which have gone on
			w.to = moment
		}
	case causes[0].to != 0:
		moment = min(moment, causes[0].to)
	}
	w.from = max(moment-min(ring.TicksOf(keep, a.TicksPerSecond), moment), a.Began)
	told.Frozen, told.Reason = a.frozenFor, causes[0].condition
	a.frozenFor = 0
	if causes[0].detail != "" {
		told.Reason += ": " + causes[0].detail
	}
	if told.File, err = a.write(w, threads, causes, others, told); err != nil {
		return false, fmt.Errorf("callreel: %w", err)
	}
	told.Took = time.Since(begun)
	a.Dumped(*told)
	return true, nil
}

// undisturbed lets what fires be dumped later, without freezing the rings, until end is called.
func (a *Loop) undisturbed() (end func()) {
	a.compact.dumping.Add(1)
	a.predicates.Arm(false) // refill arms them again
	return func() { a.compact.dumping.Add(-1) }
}

// take copies what the rings hold up to a moment, and holds what the store has. compactor.done is to be called for it.
func (a *Loop) take(to uint64) (held copies, threads []*threadRuns, err error) {
	held, err = a.compact.copy(to)
	a.noteGap(max(a.thawed, a.Began)) // threads may have found no chunk
	for _, w := range held.gaps {
		a.gaps = append(a.gaps, gap{w.from, w.to, []int{0}})
	}
	if err != nil {
		return held, nil, err
	}
	return held, a.assign(held), nil
}

// lastEvent is when the last event was written, or least if there is none later.
func lastEvent(threads []*threadRuns, least uint64) uint64 {
	for _, t := range threads {
		if n := len(t.chunks); n > 0 {
			least = max(least, t.chunks[n-1].Last())
		}
		for _, h := range slices.Backward(t.runs) {
			if n := len(h.Events); n > 0 {
				least = max(least, h.Events[n-1].Time)
				break
			}
		}
	}
	return least
}

// window is the time that a dump is of, in ticks. Calls are missing from it up to lost, of threads that are not in it.
type window struct{ from, to, lost uint64 }

// noteGap notes which threads have lost calls from a moment up to now, for want of a chunk: the rings were frozen, or all chunks in use.
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

// droppedByOthers notes that threads have ended that had lost calls for want of a chunk. Which they were isn't kept: there may be any number.
func (a *Loop) droppedByOthers() {
	from, now := max(a.thawed, a.Began), ring.Ticks()
	if n := len(a.gaps); n > 0 && a.gaps[n-1].tids[0] == 0 && int64(a.gaps[n-1].to-from) >= 0 {
		a.gaps[n-1].to = now
		return
	}
	a.gaps = append(a.gaps, gap{from, now, []int{0}})
}

// threadRuns is a thread with what there is of it, oldest first: what the store has, and then what the rings hold.
type threadRuns struct {
	*thread
	base   past.Base
	chunks []*past.Chunk
	runs   []ring.Run
	ids    []uint32 // the target's IDs of functions by those in chunks
	key    uint32   // in the reel
	w      *reel.ThreadWriter
	// since is when the first call in the dump began, if that was before the window; else 0.
	since uint64
	kept  []waitcalls.Kept // calls that took long
}

// assign finds out whose the chunks are: thread IDs are used again.
func (a *Loop) assign(held copies) []*threadRuns {
	var all []*threadRuns
	of, nobody := map[*thread]*threadRuns{}, map[int]*thread{}
	ended := map[int][]*thread{}
	for _, e := range a.ended {
		ended[e.nstid] = append(ended[e.nstid], e)
	}
	ids := a.Functions.Targets()
	whose := func(tid int, from uint64) *threadRuns {
		t := a.threads[tid]
		for _, e := range ended[tid] {
			if int64(e.end-from) >= 0 && (t == nil || int64(e.end-t.end) < 0 || t.end == 0) {
				t = e
				break
			}
		}
		if t == nil { // it has written nothing but this, and is not met yet
			a.meet(tid, 0, "")
			t = a.threads[tid]
		}
		if t == nil { // nor is it there
			if t = nobody[tid]; t == nil {
				t = &thread{nstid: tid, tid: tid, pid: a.Target.PID()}
				nobody[tid] = t
			}
		}
		if of[t] == nil {
			of[t] = &threadRuns{thread: t, ids: ids}
			all = append(all, of[t])
		}
		return of[t]
	}
	runs := held.runs
	for _, h := range held.held {
		for ; len(runs) > 0 && runs[0].TID < h.TID; runs = runs[1:] {
			t := whose(runs[0].TID, runs[0].From)
			t.runs = append(t.runs, runs[0])
		}
		first := true
		of := func(from uint64) *threadRuns {
			t := whose(h.TID, from)
			if first {
				t.base, first = h.Base, false
			}
			return t
		}
		for _, c := range h.Chunks {
			t := of(c.From)
			t.chunks = append(t.chunks, c)
		}
		for ; len(runs) > 0 && runs[0].TID == h.TID; runs = runs[1:] {
			t := of(runs[0].From)
			t.runs = append(t.runs, runs[0])
		}
	}
	for _, h := range runs {
		t := whose(h.TID, h.From)
		t.runs = append(t.runs, h)
	}
	return all
}

// dumpFile is a dump that is being written. Closing leaves it to get its name.
type dumpFile struct{ *outfile.File }

func (dumpFile) Close() error { return nil }

// write writes a dump and gives it the first number that no other has: there may be several recorders with one folder.
func (a *Loop) write(win window, threads []*threadRuns, causes []cause, others []*joint, told *Dumped) (name string, err error) {
	folder, err := a.Folder.open()
	if err != nil {
		return "", err
	}
	f, err := folder.BeginNumbered(dumpName(a.number+1), a.Folder.Mode)
	if err != nil {
		return "", err
	}
	if err := a.writeTo(dumpFile{f}, win, threads, causes, others, told); err != nil {
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
func (a *Loop) writeTo(f dumpFile, win window, threads []*threadRuns, causes []cause, others []*joint, told *Dumped) error {
	w, err := a.Catalog.create(f)
	if err != nil {
		return err
	}
	d := reel.Dump{From: win.from, To: win.to}
	out := &jointOut{w: w, win: win, dump: &d}
	err = a.writePart(out, max(win.lost, a.Couple.lost()), threads, causes)
	if err == nil {
		err = writeParts(others, out)
	}
	if err == nil {
		err = writePauses(w, a.Pauses(win.from, win.to))
	}
	if err == nil {
		err = a.writeStates(w.Writer, win, out.called)
	}
	if err == nil {
		for _, c := range causes {
			var t reel.Trigger
			if t, err = c.trigger(threads, names{a.Functions, w}, a.gaps); err != nil {
				break
			}
			d.Triggers = append(d.Triggers, t)
		}
	}
	if err == nil {
		d.Missing = joined(d.Missing)
		a.pair()
		for _, p := range a.pairs {
			err = errors.Join(err, w.ClockPair(p.Tick, p.UnixNS))
		}
		err = errors.Join(err, w.Dump(d))
	}
	told.Events, told.Missing = w.Stats().Events, len(d.Missing)
	return errors.Join(err, w.Close())
}

// writeThreads writes the events of all threads, and adds to said what they have said to the recording.
func (a *Loop) writeThreads(w *catalogued, win window, threads []*threadRuns, causes []cause, d *reel.Dump, said *[]saidBy) error {
	values, marks, names := a.Values.In(w.Writer), a.Marks(w.Writer), names{a.Functions, w}
	for _, t := range threads {
		about := reel.Thread{TID: t.tid, Process: t.pid, StartTime: t.start, Name: t.name}
		if t.end == 0 {
			a.readName(t.thread)
			about.Name = t.name
		}
		cut, err := t.cut(win, a.calls)
		if err == nil {
			err = a.calls.addEntries(t, &cut, causes)
		}
		if err == nil {
			err = t.weave(&cut, win, a.glances.of(t.thread, win))
		}
		if err != nil {
			return err
		}
		passed, payloads := t.marks(win)
		if len(cut.events) == 0 && len(cut.open) == 0 && len(passed) == 0 {
			continue
		}
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
		to := dumpedThread{a, t, values, names}
		if a.Min > 0 {
			if err := t.writeLong(&cut, to, a.Min); err != nil {
				return err
			}
			cut.open, cut.events = nil, nil
		}
		for i, part := range append([][]reel.Event{cut.open}, cut.events...) {
			if h := cut.chunk(i - 1); h != nil {
				if err := to.writeChunk(h); err != nil {
					return err
				}
				continue
			}
			if err := to.AppendWith(part, cut.payloads[i]); err != nil {
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

// remember keeps which of the thread's calls took long, and what they were about, and returns the other payloads.
func (d dumpedThread) remember(events []reel.Event, payloads []ring.Payload) []ring.Payload {
	if d.a.WaitCalls == nil {
		return payloads
	}
	kept, rest := d.a.WaitCalls.Take(events, payloads)
	d.t.kept = append(d.t.kept, kept...)
	return rest
}

// writeChunk writes what the store has of the thread as it is, with the values of its events.
func (d dumpedThread) writeChunk(h *past.Chunk) error {
	events, at, payloads := h.Carrying()
	payloads = d.remember(events, payloads)
	sets, describe := d.values.Decode(events, payloads)
	if len(sets) > 0 {
		if err := d.names.Translate(events); err != nil {
			return err
		}
		if err := describe(events); err != nil {
			return err
		}
	}
	for i := range sets {
		s := &sets[i]
		e := &events[s.Number]
		s.Function, s.AtReturn, s.Time, s.SP = e.ID(), e.IsExit(), e.Time, e.SP
		s.Number = uint64(at[s.Number])
	}
	return h.AppendTo(d.t.w, sets)
}

// marks are the passings of markers in a window, in order of time, with what they carry.
func (t *threadRuns) marks(win window) (list []reel.Event, payloads []ring.Payload) {
	last := win.from
	behind, who := uint32(0), reel.Event{} // what said last which goroutine goes on
	add := func(seq, next uint32, marks []reel.Event, with []ring.Payload) {
		if seq != behind && who.Word != 0 { // nobody knows any more
			who = reel.Switch(last, 0)
			list = append(list, who)
		}
		behind = next
		for i, e := range marks {
			for len(with) > 0 && with[0].Event < i {
				with = with[1:]
			}
			_, isSwitch := e.Goroutine()
			if isSwitch {
				who = e
			}
			if e.Time < win.from || e.Time > win.to {
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
	for _, h := range t.chunks {
		add(h.Seq, h.Next, h.Marks, h.MarkPayloads)
	}
	for _, h := range t.runs {
		ring.InOrder(h.Marks)
		add(h.Seq, h.Seq+1, h.Marks, h.MarkPayloads)
	}
	return list, payloads
}

// writeLong writes a thread's events without the calls that are shorter than so many ticks, which its stubs could not take back.
func (t *threadRuns) writeLong(cut *cutEvents, to ring.Sink, ticks uint64) error {
	f := ring.NewFilter(to, ticks)
	var buf []reel.Event
	for i, part := range append([][]reel.Event{cut.open}, cut.events...) {
		payloads := cut.payloads[i]
		if h := cut.chunk(i - 1); h != nil {
			run, err := h.Run(t.ids, buf)
			if err != nil {
				return err
			}
			part, buf, payloads = run.Events, run.Events, run.Payloads
		}
		if err := f.AppendWith(part, payloads); err != nil {
			return err
		}
	}
	return f.End()
}

// dumpedThread is a thread's part of a dump, which gets events as the target has written them.
type dumpedThread struct {
	a      *Loop
	t      *threadRuns
	values Decoder
	names  names
}

func (d dumpedThread) Append(events []reel.Event) error { return d.AppendWith(events, nil) }

// AppendWith writes events with the values that they carry.
func (d dumpedThread) AppendWith(events []reel.Event, payloads []ring.Payload) error {
	payloads = d.remember(events, payloads)
	sets, describe := d.values.Decode(events, payloads)
	if err := d.names.Translate(events); err != nil {
		return err
	}
	if len(sets) > 0 {
		if err := describe(events); err != nil {
			return err
		}
	}
	return d.t.w.AppendWith(events, sets)
}

func (d dumpedThread) Dropped(entries, exits, tick uint64) error {
	return d.t.w.Dropped(entries, exits, tick)
}

// missingByFreezing adds the times in which calls were dropped, and of which there is nothing left of some threads.
func (a *Loop) missingByFreezing(win window, threads []*threadRuns, d *reel.Dump) {
	if int64(win.lost-win.from) > 0 && win.lost != 0 {
		d.Missing = append(d.Missing, reel.Missing{From: win.from, To: min(win.lost, win.to)})
	}
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
func (c cause) trigger(threads []*threadRuns, names names, gaps []gap) (t reel.Trigger, err error) {
	t = reel.Trigger{Kind: c.kind, Condition: c.condition, Detail: c.detail, SP: c.sp, Start: c.from, End: c.to}
	if c.function != 0 {
		if t.Function, err = names.IDOf(c.function); err != nil {
			return t, err
		}
	}
	for _, h := range threads {
		if h.nstid != c.tid || c.tid == 0 || h.end != 0 && int64(h.end-c.to) < 0 {
			continue
		}
		t.Thread = h.key
		if c.function != 0 {
			h.exactly(c, t.Function, &t, gaps)
		}
		break
	}
	return t, nil
}

// lostWithin says whether the thread has dropped calls in a time.
func (h *threadRuns) lostWithin(from, to uint64, gaps []gap) bool {
	return slices.ContainsFunc(gaps, func(g gap) bool {
		return int64(g.to-from) > 0 && int64(to-g.from) > 0 && slices.Contains(g.tids, h.nstid)
	})
}
