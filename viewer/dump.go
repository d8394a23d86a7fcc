package viewer

import "github.com/callreel/callreel/reel"

// Trigger is what a dump was made for, as `callreel report --json` has it. Times are nanoseconds from the reel's first tick.
type Trigger struct {
	Kind      string `json:"kind"` // call, request, stall or end
	Condition string `json:"condition"`
	Detail    string `json:"detail,omitempty"`
	// Name is the function's, empty if there is none.
	Name   string `json:"name"`
	Module string `json:"module,omitempty"`
	// TID and Thread are the ID and the name of the thread, 0 and empty if it isn't known.
	TID    int    `json:"tid"`
	PID    int    `json:"pid,omitempty"`
	Thread string `json:"thread"`
	// StartNS is when the call began, StartUnixNS the same in nanoseconds since 1970 UTC; 0 if that isn't known.
	StartNS     uint64 `json:"start_ns"`
	StartUnixNS int64  `json:"start_unix_ns,omitempty"`
	// DurationNS is how long it took; if it is Open, that is up to the dump's end.
	DurationNS uint64 `json:"duration_ns"`
	Open       bool   `json:"open,omitempty"`
}

// Missing is a stretch of time of which a thread's calls are not in a dump; TID is 0 for all threads.
type Missing struct {
	TID    int    `json:"tid"`
	FromNS uint64 `json:"from_ns"`
	ToNS   uint64 `json:"to_ns"`
}

// A Dump describes the dump that a reel is, in words and nanoseconds.
type Dump struct {
	f       *reel.File
	dump    reel.Dump
	threads map[uint32]reel.Thread
	naming  *naming
}

// DumpOf returns what the reel is a dump of; ok is false if it is none.
func DumpOf(f *reel.File) (d *Dump, ok bool) {
	dump, ok := f.Dump()
	if !ok {
		return nil, false
	}
	d = &Dump{f: f, dump: dump, threads: map[uint32]reel.Thread{}, naming: newNaming(f)}
	for _, t := range f.Threads() {
		d.threads[t.Key] = t
	}
	return d, true
}

// WindowNS is how long the window is that was asked for.
func (d *Dump) WindowNS() uint64 {
	return d.f.Clock().Nanoseconds(d.dump.To - min(d.dump.From, d.dump.To))
}

// FromNS is where it begins.
func (d *Dump) FromNS() uint64 { return d.since(d.dump.From) }

// since is the time of a tick, from the first one.
func (d *Dump) since(tick uint64) uint64 {
	return d.f.Clock().Nanoseconds(tick - min(tick, d.f.FirstTick()))
}

// Triggers is how many there are; the first made the dump.
func (d *Dump) Triggers() int { return len(d.dump.Triggers) }

// Trigger returns the i-th.
func (d *Dump) Trigger(i int) Trigger {
	t := &d.dump.Triggers[i]
	thread := d.threads[t.Thread]
	j := Trigger{
		Kind: t.Kind.String(), Condition: cut(t.Condition, maxName), Detail: cut(t.Detail, maxName),
		TID: thread.TID, PID: thread.Process, Thread: cut(thread.Name, maxLaneName),
		StartNS: d.since(t.Start), DurationNS: d.f.Clock().Nanoseconds(d.dump.Ticks(t)), Open: t.Open(),
	}
	if t.Function != 0 {
		j.Name, j.Module = d.naming.of(t.Function)
	}
	if t.Start != 0 {
		j.StartUnixNS = d.f.Clock().UnixNS(t.Start)
	}
	return j
}

// Missing is how many stretches are missing.
func (d *Dump) Missing() int { return len(d.dump.Missing) }

// MissingAt returns the i-th.
func (d *Dump) MissingAt(i int) Missing {
	m := &d.dump.Missing[i]
	return Missing{TID: d.threads[m.Thread].TID, FromNS: d.since(m.From), ToNS: d.since(min(m.To, max(d.dump.To, m.From)))}
}

// ThreadName is the name of the thread of the i-th missing stretch.
func (d *Dump) ThreadName(i int) string {
	return cut(d.threads[d.dump.Missing[i].Thread].Name, maxLaneName)
}
