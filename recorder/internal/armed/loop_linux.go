package armed

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/recorder/internal/trigger"
	"github.com/callreel/callreel/reel"
)

// How often an armed recording looks around. A trigger wakes it at once.
const (
	longestTick = 200 * time.Millisecond
	makingTick  = 20 * time.Millisecond
	// lookInterval is how soon a thread's end is noticed, for each hundred threads that there are: only what they had last is kept
	// meanwhile.
	lookInterval = 500 * time.Millisecond
	// crowdedInterval is the same where few chunks are left.
	crowdedInterval = 20 * time.Millisecond
	// pairInterval is how often both clocks are read: between two readings times are exact.
	pairInterval = 10 * time.Second
	maxPairs     = 64
)

// Triggers may make some dumps at once, and then one each dumpEvery: what they ask for beyond that is counted.
const (
	dumpsAtOnce = 5
	dumpEvery   = 500 * time.Millisecond
)

// Loop waits for triggers, and makes dumps.
type Loop struct {
	Config
	calls      calls
	sameNS     bool // the target's IDs of threads are ours
	started    time.Time
	snapshots  *ring.Snapshotter
	predicates *ring.Predicates
	threads    map[int]*thread // by thread ID, as the target sees it
	ended      []*thread       // that may have events in the rings
	gone       int             // threads that were forgotten
	// mostEnded is at how many ended ones it is looked which of them have.
	mostEnded int
	pairs     []reel.ClockPair
	gaps      []gap // of the past in which the rings were frozen
	counts    Counts

	requests chan Request
	changes  chan func()
	joint    chan *joint   // dumps of others, to take part in
	over     chan struct{} // closed when the loop has ended

	seen   uint32       // firings that were looked at
	late   []lateFiring // that weren't written down yet then
	thawed uint64       // when the rings were last let go
	// frozenAt is when a trigger last froze them, of those that were looked at.
	frozenAt uint64
	// frozenFor is for how long one had frozen them when they were let go last, until a dump has told of it.
	frozenFor time.Duration
	compact   *compactor
	past      Past
	glances   glances
	crowded   atomic.Bool  // there are few chunks left: threads may have ended
	keep      atomic.Int64 // Config.Keep, for the compactor
	tokens    float64
	filled    time.Time
	number    int                    // of the last dump
	old       map[string]fs.FileInfo // dumps that were there before, and may be replaced
	last      struct{ look, pair, told time.Time }
}

// thread is one whose events the rings hold.
type thread struct {
	tid, pid, nstid int
	start           uint64 // clock ticks since boot
	name            string
	own             ring.OwnName // as it was when the name was last read
	seen            uint64       // TSC, when it was last surely there
	end             uint64       // TSC, when it was noticed that it had ended; 0 while it lives
	dropped         uint64       // entries, up to when the rings were last let go
}

// gap is a time in which the rings were frozen.
type gap struct {
	from, to uint64
	tids     []int // that have dropped calls then; 0 is for those that have ended
}

// New returns the loop of a recording that is on. Arm has been called.
func New(c Config) *Loop {
	a := &Loop{Config: c, calls: callsOf(c.Target), sameNS: c.Target.IDsAreOurs(), started: time.Now(), snapshots: ring.NewSnapshotter(c.Target.Memory),
		threads: map[int]*thread{}, mostEnded: manyEnded, tokens: dumpsAtOnce, filled: time.Now(), requests: make(chan Request),
		changes: make(chan func()), joint: make(chan *joint), over: make(chan struct{})}
	a.predicates, _ = c.Target.Memory.PredicatesAt(c.Target.Predicates) // which Arm has found to be there
	a.compact = newCompactor(a)
	a.glances.a = a
	a.keep.Store(int64(a.Keep))
	a.pair()
	return a
}

// Arm writes down what stubs are to compare. It comes before the probes are on, and again when functions have got triggers.
func Arm(t *target.Target, triggers *trigger.Set, ticksPerSecond uint64) error {
	w, err := t.Memory.PredicatesAt(t.Predicates)
	if err != nil {
		return err
	}
	triggers.WriteTo(w, ticksPerSecond)
	w.Arm(true)
	return nil
}

// Counts is what became of triggers so far. It is for the loop, and for when it has ended.
func (a *Loop) Counts() Counts { return a.counts }

// Past is what was kept when recording ended. It is for when the loop has ended, and End was called.
func (a *Loop) Past() Past { return a.past }

// SetKeep says how long the last moments are from now on. It is called in the loop.
func (a *Loop) SetKeep(d time.Duration) {
	a.Keep = d
	a.keep.Store(int64(d))
}

// OpenFunctions are those of which calls are open. It is called behind a round of who keeps the past.
func (a *Loop) OpenFunctions() (map[uint32]bool, error) { return a.compact.OpenFunctions() }

// Threads is how many threads have been recorded. It is for when the loop has ended.
func (a *Loop) Threads() int { return len(a.threads) + len(a.ended) + a.gone }

// Run waits for triggers until the context ends or the process does, whose last moments are dumped then.
func (a *Loop) Run(ctx context.Context) (err error) {
	a.Couple.join(a)
	defer a.Couple.leave(a)
	if err := a.snapshots.Prepare(); err != nil {
		return err
	}
	// A folder that can't be read has numbers that are free all the same.
	if old, last, _ := a.Folder.dumps(); a.Folder.Force {
		a.old = old
	} else {
		a.number = last
	}
	defer callWhenOver(ctx, a.predicates.Wake)()
	compacting, stop := context.WithCancel(context.WithoutCancel(ctx))
	var over sync.WaitGroup
	over.Go(func() { a.compact.run(compacting) })
	if a.Overdue != nil {
		over.Go(func() { a.glances.run(compacting) })
	}
	defer over.Wait()
	defer stop()
	a.Notice("armed: process %d is recorded into memory, and dumped to %s", a.Target.PID(), a.Folder.Path)
	defer close(a.over)
	a.Begun()
	longest := a.tick()
	tick, last := min(longest, makingTick), time.Now()
	for {
		a.predicates.Wait(a.seen, tick)
		a.Target.Memory.Beat()
		if err := a.Target.ReopenGatesAfter(time.Since(last), a.Notice); err != nil {
			return err
		}
		last = time.Now()
		making := a.Making.Round()
		a.snapshots.Meet(a.meet)
		gone, err := a.look(last)
		if err != nil {
			return err
		}
		ended := gone || ctx.Err() != nil || a.Target.Sandboxed()
		a.refill()
		inVain := a.fired() // what fired before the end is dumped
		if gone {
			a.dumpAtEnd()
		}
		if ended {
			if ctx.Err() != nil {
				a.Couple.end(a)
			}
			return nil
		}
		a.overdue()
		select {
		case q := <-a.requests:
			a.answer(q)
		case f := <-a.changes:
			f()
			longest = a.tick()
		case q := <-a.joint:
			a.takePart(q)
		default:
		}
		a.progress(last)
		if inVain { // more may fire all the time, each of which would wake us
			a.rest(ctx)
		}
		if tick = longest; making {
			tick = min(tick, makingTick) // more functions are likely to be called for the first time
		}
	}
}

// callWhenOver calls f, by another goroutine, when ctx ends. Once stop has returned f isn't called any more, and has returned if it was.
func callWhenOver(ctx context.Context, f func()) (stop func()) {
	called := make(chan struct{})
	end := context.AfterFunc(ctx, func() {
		defer close(called)
		f()
	})
	return func() {
		if !end() {
			<-called
		}
	}
}

// rest lets triggers fire that are only counted.
func (a *Loop) rest(ctx context.Context) {
	const inVainRest = 5 * time.Millisecond
	select {
	case <-ctx.Done():
	case <-time.After(inVainRest):
	}
}

// Ask wakes the loop for a request, which will be answered; it returns false if the loop has ended, or ctx.
func (a *Loop) Ask(ctx context.Context, q Request) bool {
	for {
		a.predicates.Wake()
		select {
		case a.requests <- q:
			return true
		case <-a.over:
			return false
		case <-ctx.Done():
			return false
		case <-time.After(time.Millisecond):
		}
	}
}

// Change calls f in the loop.
func (a *Loop) Change(f func()) error {
	done := make(chan struct{})
	for {
		a.predicates.Wake()
		select {
		case a.changes <- func() { f(); close(done) }:
			<-done
			return nil
		case <-a.over:
			return errors.New("the recording is just ending")
		case <-time.After(time.Millisecond):
		}
	}
}

// Replace replaces triggers by others, by their places in the set. It is called in the loop.
func (a *Loop) Replace(by map[int]trigger.Trigger) {
	a.Triggers.Replace(by)
	a.Triggers.WriteTo(a.predicates, a.TicksPerSecond)
}

// tick is how long to wait for triggers: calls that don't return are to be noticed soon.
func (a *Loop) tick() time.Duration { return a.Triggers.Interval(longestTick) }

// meet notes a thread that has written for the first time. That the target says so costs it nothing: one that isn't there, and has written
// nothing, is not kept.
func (a *Loop) meet(nstid, _ int, name string) {
	if a.threads[nstid] != nil {
		return
	}
	t := &thread{nstid: nstid, tid: nstid, pid: a.Target.PID(), name: name}
	if !a.sameNS {
		t.tid = target.OuterTID(a.Target.Process, nstid)
	}
	var err error
	now := ring.Ticks()
	if t.start, err = process.StartTime(t.pid, t.tid); err == nil {
		t.seen = now
	} else if !a.snapshots.Holds(nstid) {
		if a.snapshots.Dropped(nstid) > 0 {
			a.droppedByOthers()
		}
		a.snapshots.Forget(nstid)
		return
	}
	a.readName(t)
	a.threads[nstid] = t
}

// readName reads a thread's name. That of one that has ended is the last one known.
func (a *Loop) readName(t *thread) {
	own := a.Target.OwnName(t.nstid) // before, so that what is read is no older
	name, err := process.ThreadName(t.pid, t.tid)
	if err != nil {
		a.ownName(t)
		return
	}
	t.name, t.own = name, own
}

// ownName goes by the name that a thread has given itself since its name was last read, if stubs have seen that.
func (a *Loop) ownName(t *thread) {
	if own := a.Target.OwnName(t.nstid); own.IsThere() && own != t.own {
		t.name, t.own = own.Name, own
	}
}

// look looks which threads there are, now and then, and whether the process has gone.
func (a *Loop) look(now time.Time) (gone bool, err error) {
	if !a.Target.Alive() {
		return true, nil
	}
	if now.Sub(a.last.pair) >= pairInterval {
		a.pair()
	}
	interval := lookInterval * time.Duration(1+len(a.threads)/100)
	if a.crowded.Swap(false) {
		interval = crowdedInterval
	}
	if now.Sub(a.last.look) < interval {
		return false, nil
	}
	a.last.look = now
	looked := ring.Ticks()
	if !a.Target.Runs() {
		return true, nil
	}
	live := target.ThreadSet(a.Target.PID())
	if live == nil {
		return true, nil
	}
	for nstid, t := range a.threads {
		if live[t.tid] {
			t.seen = looked
			continue
		}
		t.end = ring.Ticks()
		a.ownName(t)
		if a.snapshots.End(nstid) != t.dropped {
			a.droppedByOthers()
		}
		a.ended = append(a.ended, t)
		delete(a.threads, nstid)
	}
	if len(a.ended) > a.mostEnded {
		a.forgetEnded()
		a.mostEnded = max(manyEnded, 2*len(a.ended))
	}
	return false, nil
}

// manyEnded is of how many threads that have ended at least it is not looked whether the rings hold anything of them.
const manyEnded = 1000

// forgetEnded forgets the threads of which the rings can't hold anything any more.
func (a *Loop) forgetEnded() {
	a.compact.forget(func(tid int) bool { return a.threads[tid] != nil })
	oldest, held := a.snapshots.Oldest(), a.snapshots.Threads()
	kept, since := a.compact.store.Threads()
	maps.Copy(held, kept)
	oldest = min(oldest, since)
	a.gone += len(a.ended)
	a.ended = slices.DeleteFunc(a.ended, func(t *thread) bool { return int64(t.end-oldest) < 0 || !held[t.nstid] })
	a.gone -= len(a.ended)
	a.gaps = slices.DeleteFunc(a.gaps, func(g gap) bool { return int64(g.to-oldest) < 0 })
}

// pair reads both clocks.
func (a *Loop) pair() {
	a.last.pair = time.Now()
	if len(a.pairs) == maxPairs {
		a.pairs = slices.Delete(a.pairs, 1, maxPairs/2)
	}
	a.pairs = append(a.pairs, ring.ClockPair())
}

// refill lets triggers make dumps again after a while.
func (a *Loop) refill() {
	now := time.Now()
	a.tokens = min(dumpsAtOnce, a.tokens+now.Sub(a.filled).Seconds()/dumpEvery.Seconds())
	a.filled = now
	a.predicates.Arm(a.mayDump())
}

func (a *Loop) mayDump() bool {
	return a.tokens >= 1 && (a.Max == 0 || a.Couple.dumped(a.counts.Dumped) < a.Max)
}

// progressInterval is how often it is told how it stands.
const progressInterval = 200 * time.Millisecond

func (a *Loop) progress(now time.Time) {
	if now.Sub(a.last.told) < progressInterval {
		return
	}
	a.last.told = now
	a.Progress(Progress{Elapsed: now.Sub(a.started), Threads: len(a.threads), Counts: a.counts})
}

// End sums up, when the process has been left.
func (a *Loop) End() error {
	more := int(a.predicates.Fired() - a.seen)
	a.counts.Fired += more
	a.counts.Suppressed += more
	if n := a.predicates.Untracked(); n > 0 {
		a.Notice("%d calls could not be tracked: more than %d were open at once", n, ring.OpenCalls)
	}
	a.past = a.compact.past()
	a.compact.store.Close()
	return a.snapshots.Close()
}
