package live

import (
	"fmt"
	"path"
	"time"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
)

// Recent is the last stretches of a Meter, and the sum of all since the beginning. It is used by one goroutine.
type Recent struct {
	meter *Meter
	keep  int
	last  []*reel.LiveSums
	sum   reel.LiveSums // of last
	all   reel.LiveSums
	ended []uint32          // threads of the last stretch
	names map[uint32]naming // by function
}

// naming is what a function is called.
type naming struct{ name, short, module string }

// NewRecent keeps so many stretches, at least one.
func NewRecent(m *Meter, keep int) *Recent {
	return &Recent{meter: m, keep: max(keep, 1), names: map[uint32]naming{}}
}

// Add adds a stretch, and drops the oldest if there are enough.
func (w *Recent) Add(s *reel.LiveSums) {
	w.meter.forget(w.ended)
	w.ended = w.ended[:0]
	for i := range s.Threads {
		if s.Threads[i].Ended {
			w.ended = append(w.ended, s.Threads[i].Key)
		}
	}
	w.all.Add(s)
	w.last = append(w.last, s)
	if len(w.last) > w.keep {
		w.meter.Reuse(w.last[0])
		w.last = append(w.last[:0], w.last[1:]...)
	}
}

// forget forgets threads.
func (m *Meter) forget(keys []uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.threads, key)
	}
}

// Snapshot is what happened in a stretch of time.
type Snapshot struct {
	Elapsed   time.Duration
	Calls     uint64
	Dropped   uint64 // calls that found no room in the rings
	LostExits uint64
	Ignored   uint64     // calls that were not summed up since too many were open
	Functions []Function // by ID
	Threads   []Thread   // in order of appearance
	// Budget is how a budget is kept, nil if there is none. Off are the functions that are off now for what they cost, by their calls a second
	// when they were last on, most first.
	Budget *reel.Budget
	Off    []OffFunction
}

// Function is what a function's calls came to. Times are in nanoseconds.
type Function struct {
	ID           uint32
	Name, Module string // as the files have them, demangled; they may hold anything
	Short        string // Name without parameters and template arguments
	Calls        uint64
	PerSecond    float64 // of Calls
	// Open counts the calls that were open at the end.
	Open uint64
	// Self is the time in it without the calls that it made, of all threads.
	Self uint64
	// P99 is of the calls that were complete; if there was none, Whole is false.
	P99   uint64
	Whole bool
	// Max is the longest call; those that are open count up to now.
	Max uint64
	// Off says that it is off now: what is counted is from before.
	Off bool
}

// Thread is what a thread did, and where it is.
type Thread struct {
	TID       int
	Name      string // it may hold anything
	Calls     uint64
	PerSecond float64
	Dropped   uint64
	Depth     int    // how many calls are open
	In        string // the innermost of them, empty if there is none
	For       uint64 // and for how long, in nanoseconds
	Ended     bool
}

// Empty says that there is no stretch yet.
func (w *Recent) Empty() bool { return len(w.last) == 0 }

// Snapshot returns the sum of the last stretches, or of all since the beginning.
func (w *Recent) Snapshot(all bool) *Snapshot {
	sums := &w.all
	if !all {
		sums = &w.sum
		sums.Clear()
		for _, s := range w.last {
			sums.Add(s)
		}
	}
	w.meter.mu.Lock()
	defer w.meter.mu.Unlock()
	ns := func(ticks uint64) uint64 { return uint64(float64(ticks) / w.meter.perSecond * 1e9) }
	snap := &Snapshot{
		Elapsed: time.Duration(ns(sums.End - min(sums.Start, sums.End))),
		Dropped: sums.Dropped, LostExits: sums.LostExits, Ignored: sums.Ignored,
	}
	perSecond := func(n uint64) float64 { return float64(n) / max(snap.Elapsed.Seconds(), 1e-3) }
	for id, f := range sums.Functions {
		p99, whole := sums.Percentile(id, 99)
		n := w.naming(id)
		snap.Calls += f.Calls
		snap.Functions = append(snap.Functions, Function{
			ID: id, Name: n.name, Short: n.short, Module: n.module, Calls: f.Calls, PerSecond: perSecond(f.Calls), Open: f.Open,
			Self: ns(f.Self), P99: ns(p99), Whole: whole, Max: ns(f.Max), Off: w.meter.isOff(id),
		})
	}
	for i := range sums.Threads {
		t := &sums.Threads[i]
		one := Thread{Calls: t.Calls, PerSecond: perSecond(t.Calls), Dropped: t.Dropped, Depth: t.Depth, Ended: t.Ended}
		if about := w.meter.threads[t.Key]; about != nil {
			one.TID, one.Name = about.TID, about.Name
		}
		if t.Depth > 0 {
			one.In = w.naming(t.Function).String()
			one.For = ns(sums.End - min(t.Since, sums.End))
		}
		snap.Threads = append(snap.Threads, one)
	}
	w.offs(snap, sums.End, ns)
	return snap
}

// naming names a function, with the meter locked.
func (w *Recent) naming(id uint32) naming {
	if n, known := w.names[id]; known {
		return n
	}
	if id == 0 || int(id) > len(w.meter.functions) {
		const unknown = "functions that are not known"
		return naming{name: unknown, short: unknown}
	}
	f := &w.meter.functions[id-1]
	n := naming{name: demangle.Name(f.Name), short: demangle.Short(f.Name)}
	if f.Name == "" {
		n.name = fmt.Sprintf("function #%d", id)
		n.short = n.name
	}
	if i := int(f.Image); i > 0 && i <= len(w.meter.images) {
		n.module = path.Base(w.meter.images[i-1].Path)
	}
	w.names[id] = n
	return n
}

// String is the name with its module.
func (n naming) String() string {
	if n.module == "" {
		return n.name
	}
	return n.module + "!" + n.name
}
