package collect

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/budget"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/overdue"
	"github.com/callreel/callreel/recorder/internal/pace"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// How often things are done while recording.
const (
	// maxRest lets events gather between rounds, since each waking costs some 10 µs. minRest is for small rings.
	maxRest = 10 * time.Millisecond
	minRest = 200 * time.Microsecond
	// countRest is maxRest where calls are counted for a budget: what costs too much is to be known soon. idleRest is that of a process that
	// does next to nothing, which is to cost next to nothing: no more than idleTimes what is safe in any case.
	countRest = 3 * time.Millisecond
	idleRest  = 2 * pace.Step
	idleTimes = 4
	// flushInterval bounds what is lost of the reel if we are killed.
	flushInterval = 200 * time.Millisecond
	// tasksInterval is how soon a thread's name is noticed, and the end of the process, or of a thread of a forked child.
	tasksInterval = 20 * time.Millisecond
	// endsInterval is how soon a thread's end is, or later if it takes longer than a tenth of that to look for all.
	endsInterval = 2 * time.Millisecond
	endsShare    = 10
	// renameInterval is how often names of threads that are long known are read again.
	renameInterval = time.Second
	clockInterval  = time.Second
)

// Config says what is collected, and where it goes.
type Config struct {
	Target    *target.Target
	Sink      Sink
	Functions tables.Functions // their numbers there
	Values    Values
	WaitCalls *waitcalls.Set // whose arguments are kept; nil for none
	Marks     Marks
	GoMarks   bool // they are of goroutines
	Making    *probes.Maker
	Switches  *probes.Switches
	Processes Processes
	// Tally counts calls by function; nil if nobody asks.
	Tally *budget.Tally
	// Naps says that there is a processor of Go's scheduler to keep between rounds.
	Naps bool
	// Overdue says what threads do that have written nothing for long; nil if nobody is to be asked. It needs a Tally. TicksPerSecond is the
	// events' clock.
	Overdue        *overdue.Watch
	TicksPerSecond uint64
	// Began is when recording was on, in ticks, and Since a moment before that, in clock ticks since boot.
	Began, Since uint64
	// Threads are globs of the names of threads that are recorded; empty for all. Off is what KeepOff has said of the others.
	Threads []string
	Off     map[int]int
	// Min is for how many ticks a call must take to be kept; 0 keeps all. Chunks is how many the rings have.
	Min    uint64
	Chunks int
	// GoesOn says that the sink takes what other recordings write when this one has ended.
	GoesOn bool
	// Said is told, in the loop and behind each round, what the program says of pauses, in order of time; nil if nobody wants to know. began is
	// when the round did, and held whether the program's own pause was on then, as far as the rings say that.
	Said func(list []Said, began uint64, held bool)
	// Notice tells what the user should know. Progress is called some times a second.
	Notice   func(format string, args ...any)
	Progress func(Progress)
}

// Values reads what events carry besides.
type Values interface {
	// Decode reads the values of events, whose functions have their target IDs. describe is called before the values are handed on, with the
	// events as they are then: it says in the reel what is recorded of their functions.
	Decode(events []reel.Event, payloads []ring.Payload) (sets []reel.ValueSet, describe func(events []reel.Event) error)
}

// Marks reads the passings of markers.
type Marks interface {
	// Decode makes marks of a thread's events. tell is told what the thread says to the recorder itself. The marks are valid until the next call.
	// In goroutine is kept which goroutine runs on the thread.
	Decode(events []reel.Event, payloads []ring.Payload, goroutine *uint64, tell func(markers.Said)) ([]reel.Mark, error)
}

// Processes are those whose threads write into the rings.
type Processes interface {
	// Of returns which process a thread is of that says it is of nspid, an ID in that process's own namespace; 0 is for one that doesn't say.
	Of(nspid int) (pid int)
	// OuterTID is a thread's ID as seen from here, by its ID in the process's own namespace.
	OuterTID(pid, nstid int) int
	// Sees says whether there is a thread that says it is nstid of nspid, as far as that can be told.
	Sees(nspid, nstid int) bool
	// Look finds out which processes have ended. It returns false when all have.
	Look() bool
	// Threads lists the threads of a process, none when it has ended.
	Threads(pid int) map[int]bool
}

// Alone are the Processes of a recording that doesn't follow children: one.
type Alone struct {
	target *target.Target
	ours   bool
}

// NewAlone returns the Processes with nothing but the target.
func NewAlone(t *target.Target) *Alone { return &Alone{t, t.IDsAreOurs()} }

// Of is the target, whatever a thread says.
func (a *Alone) Of(int) int { return a.target.PID() }

// OuterTID is a thread's ID as seen from here.
func (a *Alone) OuterTID(_, nstid int) int {
	if a.ours {
		return nstid
	}
	return target.OuterTID(a.target.Process, nstid)
}

// Sees says whether the target has such a thread.
func (a *Alone) Sees(_, nstid int) bool { return a.ours && !process.ThreadGone(a.target.PID(), nstid) }

// Look says whether the target is there.
func (a *Alone) Look() bool { return a.target.Runs() }

// Threads lists the target's threads.
func (a *Alone) Threads(pid int) map[int]bool {
	if !a.target.Runs() {
		return nil
	}
	return target.ThreadSet(pid)
}

// Progress is how collecting stands.
type Progress struct {
	Elapsed        time.Duration
	Calls, Dropped uint64
	Threads        int
}

// Collector is the loop that drains the rings.
type Collector struct {
	Config
	drainer *ring.Drainer
	started time.Time
	known   map[int]*thread // by the thread ID as the target sees it
	// openCalls is how many calls are in the threads' lists of open ones.
	openCalls int
	order     []*thread // as they were met; those that are over are taken out when ends are looked for
	starts    int       // threads of this round whose part was begun
	turn      int       // from where in order names are read next
	endsTook  time.Duration
	said      []Said // in this round
	sayings   uint64 // that were told
	asking    asking
	began     began
	seen      uint64 // calls that were not recorded but seen on stacks
	last      struct{ flush, tasks, ends, waiting, whole, clock time.Time }
}

// thread is one of those that are recorded.
type thread struct {
	ThreadSink // nil while the thread is off
	c          *Collector
	pid        int  // of its process
	tid        int  // as seen from here
	nstid      int  // as the target sees it
	over       bool // it has ended
	name       string
	read       time.Time    // when the name was last read
	fresh      int          // readings of the name still to be made soon: threads are named just after they start
	own        ring.OwnName // as it was when the name was last read
	open       probes.OpenCalls
	counted    *reel.LiveThread // nil if nobody counts
	silence    overdue.Silence
	waited     uint64 // the wait in which it was seen, or asked what it does, last
	waitedAt   uint64 // when it was found in it
	poll       uint64 // when it is looked next whether it waits
	asked      uint64 // for how long it had written nothing when it was asked last what it does, in ticks; 0 if it has written since
	// marked is the time of the last mark, given the name that the thread has said in one, which counts for more than others.
	marked uint64
	given  string
	// goroutine is the one that runs on the thread, of a Go program whose markers are recorded.
	goroutine uint64
	// seen is the last tick at which the thread was surely there, 0 if it never was looked for in time.
	seen uint64
}

// unread is thread.fresh at first.
const unread = 8

// New returns what collects.
func New(c Config) *Collector {
	d := &Collector{Config: c, started: time.Now(), known: map[int]*thread{}}
	d.drainer = ring.NewDrainer(c.Target.Memory, d.open)
	d.drainer.Ran, d.drainer.Min, d.drainer.TakesBack = d.ran, c.Min, c.Target.Runtime.Min
	d.drainer.Goroutines = c.GoMarks
	if c.Tally != nil { // so that what costs too much is known soon
		d.drainer.Most = ring.MostAtOnce / 32
	}
	return d
}

// Seen is how many calls were not recorded but seen on stacks, see overdue.
func (d *Collector) Seen() uint64 { return d.seen }

// Totals is what was collected.
func (d *Collector) Totals() ring.Totals { return d.drainer.Totals() }

// SetMin changes how many ticks a call must take to be kept. It is called in the loop.
func (d *Collector) SetMin(ticks uint64) { d.drainer.SetLeast(ticks) }

// OpenFunctions are those of which calls are open, as far as events have been drained. It is called in the loop.
func (d *Collector) OpenFunctions() (map[uint32]bool, error) {
	open := map[uint32]bool{}
	for _, k := range d.known {
		for id := range k.open.Functions {
			open[id] = true
		}
	}
	return open, nil
}

// ran is how much processor time a thread has used, by its ID in the target's namespace.
func (d *Collector) ran(nstid int) (time.Duration, bool) {
	k := d.known[nstid]
	if k == nil {
		return 0, false
	}
	return process.ThreadRan(k.pid, k.tid)
}

// open starts a thread's part of the reel.
func (d *Collector) open(nstid, nspid int, name string) (ring.Sink, error) {
	k := &thread{c: d, pid: d.Processes.Of(nspid), nstid: nstid, name: name, fresh: unread}
	k.tid = d.Processes.OuterTID(k.pid, nstid)
	if k.own = d.Target.OwnName(nstid); k.own.IsThere() { // since it registered
		k.name = k.own.Name
	}
	if len(d.Config.Threads) > 0 { // threads name themselves just after they start
		if now, err := process.ThreadName(k.pid, k.tid); err == nil {
			k.name = now
		}
	}
	d.known[nstid] = k
	d.order = append(d.order, k)
	if !wants(d.Config.Threads, k.name) {
		return nil, nil
	}
	return k, d.begin(k)
}

// Run drains until the context ends, the process does, or the reel can't be written.
func (d *Collector) Run(ctx context.Context) error {
	longest, rounds := d.longestRest(), &d.Switches.Rounds
	fill := ring.ChunkEvents * d.Chunks / 8 // how much may gather between rounds
	last := time.Now()
	if err := d.askBegan(); err != nil && !errors.Is(err, process.ErrNoProcess) {
		return err
	}
	for {
		d.Making.Round()
		began, held := ring.Ticks(), d.Target.Memory.PausedSelf()
		rounds.Begin()
		d.starts = 0
		err := d.heard()
		n := 0
		if err == nil {
			n, err = d.drainer.Round()
		}
		if err == nil {
			d.tellSaid(began, held)
			left := d.drainer.Left(n)
			if d.Tally != nil {
				d.Tally.Round(left)
			}
			rounds.End(!left)
			if err = d.letBegin(left); err == nil {
				err = d.Sink.Round(began)
			}
		}
		if err != nil {
			return err
		}
		if err := d.Target.ReopenGatesAfter(time.Since(last), d.Notice); err != nil {
			return err
		}
		if err := d.housekeeping(); err != nil {
			if errors.Is(err, process.ErrNoProcess) {
				return nil
			}
			return err
		}
		if ctx.Err() != nil || d.Target.Sandboxed() {
			return d.lastNames()
		}
		now := time.Now()
		elapsed := now.Sub(last)
		last = now
		rest := longest
		if n > 0 {
			rest = min(rest, elapsed*time.Duration(fill)/time.Duration(n))
		}
		if n >= fill {
			continue
		}
		if n == 0 && d.Tally != nil && !d.isBusy(began) {
			rest = min(idleRest, idleTimes*longest)
		}
		if rest, err = d.ask(rest); err != nil {
			return err
		}
		rest = pace.Rest(now, rest)
		pace.Wait(ctx, max(rest, minRest), d.Naps)
	}
}

// longestRest is how long the ring surely lasts when the target suddenly calls as much as a core can.
func (d *Collector) longestRest() time.Duration {
	const fastest = 160e6 // events a second and core, with nothing but calls and no clock
	events := float64(ring.ChunkEvents * d.Chunks / 4)
	longest := maxRest
	if d.Tally != nil {
		longest = countRest
	}
	return min(longest, time.Duration(events/fastest*float64(time.Second)))
}

// housekeeping does what is due.
func (d *Collector) housekeeping() error {
	now := time.Now()
	due := func(last *time.Time, every time.Duration) bool {
		if now.Sub(*last) < every {
			return false
		}
		*last = now
		return true
	}
	if due(&d.last.ends, max(endsInterval, endsShare*d.endsTook)) {
		if err := d.ends(); err != nil {
			return err
		}
	}
	if due(&d.last.tasks, tasksInterval) {
		if err := d.tasks(due(&d.last.whole, renameInterval), namesAtOnce); err != nil {
			return err
		}
	}
	if due(&d.last.clock, clockInterval) {
		p := ring.ClockPair()
		if err := d.Sink.ClockPair(p.Tick, p.UnixNS); err != nil {
			return err
		}
	}
	if due(&d.last.flush, flushInterval) {
		if err := d.Sink.Flush(); err != nil {
			return err
		}
		d.progress(now)
	}
	return nil
}

func (d *Collector) progress(now time.Time) {
	t := d.drainer.Totals()
	d.Progress(Progress{Elapsed: now.Sub(d.started), Calls: t.Entries, Dropped: t.Dropped, Threads: t.Threads})
}

// lastNames reads the names of threads that have named themselves since the last look.
func (d *Collector) lastNames() error {
	if err := d.tasks(true, math.MaxInt); !errors.Is(err, process.ErrNoProcess) {
		return err
	}
	return nil
}

// Finish drains what is left when nobody writes any more. The recording's end is when the gates were closed: draining may take long. A
// process that ended by itself did so a little before that was noticed, which is not the end of its unfinished calls, then.
func (d *Collector) Finish(ended bool) error {
	at := d.Target.GatesClosed
	if !ended {
		d.drainer.EndsAt = at.Tick
	}
	err := d.ownNames()
	held := d.Target.Memory.PausedSelf()
	err = errors.Join(err, d.drainer.Finish(), d.lastWords())
	d.tellSaid(ring.Ticks(), held)
	for _, k := range d.known {
		if k.fresh == unread && !ended && k.ThreadSink != nil && k.given == "" { // first seen just now
			if name, e := process.ThreadName(k.pid, k.tid); e == nil {
				err = errors.Join(err, k.Rename(name))
			}
		}
	}
	if d.GoesOn && ended { // the recordings of other processes may go on
		for _, k := range d.known {
			err = errors.Join(err, k.end())
		}
	}
	if !ended && at.Tick != 0 {
		if e := d.Sink.ClockPair(at.Tick, at.UnixNS); err == nil {
			err = e
		}
	}
	d.progress(time.Now())
	return err
}

// Append puts a thread's events where they go.
func (k *thread) Append(events []reel.Event) error { return k.AppendWith(events, nil) }

// Dropped counts what was not recorded for want of room, and passes it on.
func (k *thread) Dropped(entries, exits, tick uint64) error {
	if k.counted != nil {
		k.counted.Dropped(entries, exits)
	}
	return k.ThreadSink.Dropped(entries, exits, tick)
}

// pick takes out what functions that are off have written.
func (k *thread) pick(events []reel.Event, payloads []ring.Payload) ([]reel.Event, []ring.Payload) {
	c := k.c
	events, payloads = c.Switches.Pick(&k.open, events, payloads)
	if k.counted != nil {
		k.counted.Push(events)
		if n := len(events); n > 0 && c.Tally.Saw(n, events[n-1].Time) {
			c.Tally.GiveWay(c.Switches.Rounds.Serve)
		}
	}
	return events, payloads
}

// translate gives events the reel's numbers of their functions.
func (k *thread) translate(events []reel.Event) error {
	c := k.c
	return c.Functions.Translate(events)
}

func (k *thread) append(events []reel.Event) error {
	if err := k.translate(events); err != nil {
		return err
	}
	return k.ThreadSink.Append(events)
}

// AppendWith passes a thread's events on, with the values that they carry.
func (k *thread) AppendWith(events []reel.Event, payloads []ring.Payload) error {
	if len(events) == 0 {
		return nil
	}
	from, to := events[0].Time, events[len(events)-1].Time
	if err := k.lost(from); err != nil {
		return err
	}
	events, payloads = k.pick(events, payloads)
	return k.handOn(k.weave(events, payloads, from, to))
}

// handOn passes on what is to be recorded.
func (k *thread) handOn(events []reel.Event, payloads []ring.Payload) error {
	var kept []waitcalls.Kept
	if k.c.WaitCalls != nil {
		kept, payloads = k.c.WaitCalls.Take(events, payloads)
	}
	if err := k.appendWith(events, payloads); err != nil {
		return err
	}
	if to, takes := k.ThreadSink.(keptSink); takes && len(kept) > 0 {
		return to.Kept(kept)
	}
	return nil
}

func (k *thread) appendWith(events []reel.Event, payloads []ring.Payload) error {
	to, takes := k.ThreadSink.(valueSink)
	if !takes || len(payloads) == 0 {
		return k.append(events)
	}
	values := k.c.Values
	sets, describe := values.Decode(events, payloads)
	if err := k.translate(events); err != nil {
		return err
	}
	if len(sets) > 0 {
		if err := describe(events); err != nil {
			return err
		}
	}
	return to.AppendWith(events, sets)
}
