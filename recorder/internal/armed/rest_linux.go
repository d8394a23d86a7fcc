package armed

import (
	"errors"
	"fmt"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/rest"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/reel"
)

// Rest is what an armed recorder that was killed has left.
type Rest struct {
	Process  *process.Process
	Recorder int // its PID
	Rings    *ring.Rest
	Note     *rest.Found
}

// Dump writes what the rings hold into the next file of the recorder's folder: calls of all threads without what they carry, markers, and what
// the scheduler did, all of which it takes the recorder to know.
func (r *Rest) Dump() (told Dumped, err error) {
	folder := Folder{Path: r.Note.Folder, Mode: r.Note.Mode}
	_, last, err := folder.dumps()
	if err != nil {
		return told, fmt.Errorf("callreel: %w", err)
	}
	d, err := folder.open()
	if err != nil {
		return told, fmt.Errorf("callreel: %w", err)
	}
	f, err := d.BeginNumbered(dumpName(last+1), folder.Mode)
	if err != nil {
		return told, fmt.Errorf("callreel: %w", err)
	}
	if err := r.writeTo(dumpFile{f}, &told); err != nil {
		return told, fmt.Errorf("callreel: %w", errors.Join(err, f.Abandon()))
	}
	if _, err := f.FinishNumbered(last+1, dumpName, nil); err != nil {
		return told, fmt.Errorf("callreel: %w", err)
	}
	told.File = f.Name()
	return told, nil
}

// writeTo writes the dump.
func (r *Rest) writeTo(f dumpFile, told *Dumped) error {
	catalog := &Catalog{}
	h := r.Note.File.Header()
	catalog.Begin(h)
	for _, m := range r.Note.File.Images() {
		if _, err := catalog.AddImage(m); err != nil {
			return err
		}
	}
	w, err := catalog.create(f)
	if err != nil {
		return err
	}
	now := ring.ClockPair()
	dump := reel.Dump{From: min(r.Rings.Reaches(r.Note.Began), r.Rings.At), To: r.Rings.At}
	last, err := r.writeThreads(w, r.functions(catalog), &dump)
	if err == nil {
		dump.To = max(last, dump.From)
		if at := r.Rings.Frozen; at != 0 && at < dump.To {
			dump.Missing = append(dump.Missing, reel.Missing{From: max(at, dump.From), To: dump.To})
		}
		for i := range dump.Missing {
			m := &dump.Missing[i]
			m.From, m.To = min(m.From, dump.To), min(m.To, dump.To)
		}
		dump.Missing = joined(dump.Missing)
		told.Reason = fmt.Sprintf("recorder was killed: process %d", r.Recorder)
		dump.Triggers = []reel.Trigger{{Kind: reel.TriggerRequest, Condition: "recorder was killed", Detail: fmt.Sprintf("process %d", r.Recorder)}}
		err = errors.Join(w.ClockPair(now.Tick, now.UnixNS), w.Dump(dump))
	}
	told.Events, told.Missing = w.Stats().Events, len(dump.Missing)
	return errors.Join(err, w.Close())
}

// functions are those of the note.
func (r *Rest) functions(to *Catalog) *tables.Late {
	file := r.Note.File
	next := uint32(1)
	for id := range file.Functions {
		next = max(next, id+1)
	}
	return tables.NewNoted(tables.Own{To: to}, next, file.Function)
}

// writeThreads writes the events of all threads, and returns when the last of them was.
func (r *Rest) writeThreads(w *catalogued, functions *tables.Late, d *reel.Dump) (last uint64, err error) {
	names, win := names{functions, w}, window{from: d.From, to: d.To}
	var calls calls = ofThreads{}
	if r.Note.File.Header().Goroutines {
		calls = ofGoroutines{}
	}
	for _, tid := range r.Rings.Threads() {
		runs, err := r.Rings.Runs(tid, d.To)
		if err != nil {
			return last, err
		}
		for i := range runs {
			ring.InOrder(runs[i].Events)
		}
		t := &threadRuns{thread: r.thread(tid), runs: runs}
		cut, err := t.cut(win, calls)
		if err != nil {
			return last, err
		}
		if len(cut.events) == 0 && len(cut.open) == 0 {
			continue
		}
		if t.w, err = w.Thread(reel.Thread{TID: t.tid, Process: t.pid, StartTime: t.start, Name: t.name}); err != nil {
			return last, err
		}
		for _, m := range cut.missing {
			d.Missing = append(d.Missing, reel.Missing{Thread: t.w.Key(), From: m.from, To: m.to})
		}
		for _, part := range cut.events {
			last = max(last, part[len(part)-1].Time)
		}
		to := namedThread{t.w, names}
		if r.Note.Min > 0 {
			if err := t.writeLong(&cut, to, r.Note.Min); err != nil {
				return last, err
			}
			continue
		}
		for _, part := range append([][]reel.Event{cut.open}, cut.events...) {
			if err := to.Append(part); err != nil {
				return last, err
			}
		}
	}
	return last, nil
}

// namedThread is a thread of a reel that gets events with the recording's function IDs, without the values that they carry: nobody knows any
// more what these are.
type namedThread struct {
	*reel.ThreadWriter
	names names
}

func (n namedThread) Append(events []reel.Event) error {
	if err := n.names.Translate(events); err != nil {
		return err
	}
	return n.ThreadWriter.Append(events)
}

// thread is one by its ID as the process sees it. One that has ended has no name.
func (r *Rest) thread(nstid int) *thread {
	t := &thread{nstid: nstid, tid: target.OuterTID(r.Process, nstid), pid: r.Process.Pid()}
	if start, err := process.StartTime(t.pid, t.tid); err == nil {
		t.start = start
	}
	if name, err := process.ThreadName(t.pid, t.tid); err == nil {
		t.name = name
	}
	return t
}
