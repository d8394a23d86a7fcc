package scheduling

import (
	"errors"
	"math"
	"sync"
	"time"

	"github.com/callreel/callreel/process/sched"
	"github.com/callreel/callreel/recorder/internal/pace"
	"github.com/callreel/callreel/reel"
)

const (
	// drainInterval is how often it is read what the scheduler did: the kernel's room for it is bounded, and each waking costs some 20 µs.
	drainInterval = 20 * time.Millisecond
	// keepInterval is the same of an armed recording, which sleeps otherwise.
	keepInterval = 100 * time.Millisecond
	// missingInterval is how often it is looked for threads whose end got lost.
	missingInterval = 2 * time.Second
)

// keeper takes what is learned. Its methods are called by one goroutine at a time.
type keeper interface {
	// word takes what the scheduler did with a thread, in order of time.
	word(k *life, e reel.SchedEvent)
	// waited takes what it has waited for up to a tick, in order of time. Its system call may not be known.
	waited(k *life, x reel.Wait, to uint64)
	// drained follows all words up to that tick that weren't late.
	drained(now time.Time, bound uint64) error
	// early says that a thread had ended before the recording began.
	early(k *life)
	// forget says that a thread which has ended isn't told of any more. It returns false if it is needed still.
	forget(k *life) bool
	// finish follows the last words, and comes before their drained, if there is an end.
	finish(bound uint64) error
}

// Watch learns what the scheduler does with the threads of processes, and hands it on.
type Watch struct {
	watcher     *sched.Watcher
	about       reel.Scheduling
	tellsCalls  bool // the words say in which system call a thread waits
	leastWait   uint64
	leastLookup uint64

	draining sync.Mutex // held by who drains; it is taken before mu

	mu      sync.Mutex // guards what follows, and what keep has; the reel's are taken while it is held
	lives   lives
	objects objects
	waiting []*life // that waited when they were last looked at
	keep    keeper
	from    uint64         // what was before is told as of then
	cuts    map[int]uint64 // by process: what is later is left out
	ending  int            // recordings that are about to end
	to      uint64         // when the last recording has ended
	waits   uint64
	missing time.Time // when it was last looked for threads whose end got lost
	lost    uint64    // words, up to then
	closed  bool

	stop chan struct{}
	done sync.WaitGroup
	err  error // that ended it early
}

func newWatch() *Watch {
	return &Watch{lives: newLives(), objects: newObjects(), cuts: map[int]uint64{}, to: math.MaxUint64, stop: make(chan struct{}), missing: time.Now()}
}

// Also watches another process, from now on.
func (w *Watch) Also(pid int) error { return w.watcher.Add(pid) }

// About says how states are learned.
func (w *Watch) About() reel.Scheduling { return w.about }

// SumsOnly says that the kernel's own sums are all there is.
func (w *Watch) SumsOnly() bool { return w.about.Source == sched.SourceSchedstat }

// start hands on what happens from a tick on, which has just been.
func (w *Watch) start(pid int, from uint64, keep keeper, every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from, w.keep = from, keep
	w.beginSums(pid)
	if !w.SumsOnly() {
		w.done.Go(func() { w.run(every) })
	}
}

func (w *Watch) run(every time.Duration) {
	for {
		select {
		case <-w.stop:
			return
		case <-time.After(pace.Rest(time.Now(), every)):
		}
		if err := w.drain(false); err != nil {
			w.err = err
			return
		}
	}
}

// drain hands on what there is. The last time is when the watching ends.
func (w *Watch) drain(last bool) error {
	w.draining.Lock()
	defer w.draining.Unlock()
	wanted, err := w.takeAll(last)
	// Without the lock, since it may take long, and who drains the rings needs that.
	found := lookFor(wanted)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects.learn(found, time.Now())
	if w.closed || w.ending > 0 {
		return err
	}
	now, bound := time.Now(), w.bound()
	err = errors.Join(err, w.keep.drained(now, bound))
	if lost := w.watcher.Stats().Lost; lost != w.lost && now.Sub(w.missing) >= missingInterval {
		w.lost, w.missing = lost, now
		w.lives.endMissing(now, bound)
	}
	w.lives.forget(now, w.keep.forget)
	return err
}

// takeAll takes what there is, and says which sockets are to be looked for.
func (w *Watch) takeAll(last bool) (map[int]map[uint64]bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.ending > 0 {
		return nil, nil
	}
	w.objects.round(time.Now())
	drain := w.watcher.Drain
	if last {
		drain = w.watcher.Close
		w.objects.next = time.Time{} // there is no later
	}
	err := drain(w.take)
	w.look(w.bound())
	return w.objects.due(time.Now()), err
}

// take takes a word of the scheduler's.
func (w *Watch) take(tid, pid int, e sched.Event) {
	if len(w.cuts) > 0 {
		if cut := w.cuts[pid]; cut != 0 && e.Time > cut {
			return
		}
	}
	k := w.lives.at(who{pid, tid}, e.Time)
	switch e.Kind {
	case sched.Blocked, sched.Uninterruptible:
		w.blocked(k, &e)
	case sched.Woken, sched.In:
		w.unblocked(k, e.Time)
	case sched.Preempted, sched.Lost, sched.Ended:
		k.block = block{}
	}
	w.keep.word(k, reel.SchedEvent{Time: max(e.Time, w.from), Address: e.Address, CPU: e.CPU, Waker: e.Waker, Kind: reel.SchedKind(e.Kind)})
	if e.Kind == sched.Ended {
		w.lives.end(k, e.Time, time.Now())
		if e.Time <= w.from {
			w.keep.early(k)
		}
	}
}

// Ending says that the recording of a process is about to end: Cut follows. What the scheduler does from now on waits until it is known
// whether it belongs to the recording. The kernel's sums are taken if it is the last one.
func (w *Watch) Ending(last bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending++
	if last {
		w.endSums()
	}
}

// Counts is what was learned.
type Counts struct {
	Switches uint64 // words on threads, page faults among them
	Lost     uint64 // words that found no room
	Waits    uint64 // of which it is known what they were for
}

// Counts is what was learned up to now.
func (w *Watch) Counts() Counts {
	s := w.watcher.Stats()
	w.mu.Lock()
	defer w.mu.Unlock()
	return Counts{s.Events, s.Lost + s.Odd, w.waits}
}

// Cut says that the recording of a process has ended at that tick: what is later is left out. It is 0 for one that has ended itself.
func (w *Watch) Cut(pid int, tick uint64) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending--
	if tick != 0 {
		w.cuts[pid] = tick
	}
}

// Finish ends the watching, and hands on all that is left.
func (w *Watch) Finish() error {
	close(w.stop)
	w.done.Wait()
	if !w.ends() {
		return nil
	}
	err := errors.Join(w.err, w.drain(true))
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.lives.by {
		w.unblocked(list[len(list)-1], w.bound())
	}
	err = errors.Join(err, w.keep.finish(w.bound()))
	w.closed = true
	return err
}

// ends fixes the end. It returns false if nothing was ever handed on.
func (w *Watch) ends() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.cuts) > 0 {
		w.to = 0
		for _, cut := range w.cuts {
			w.to = max(w.to, cut)
		}
	}
	return w.keep != nil
}

// bound is up to when all is known.
func (w *Watch) bound() uint64 {
	return min(w.watcher.Bound(), w.to)
}
