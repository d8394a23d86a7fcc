package sched

import (
	"math"
	"slices"
)

// A source may know how much the kernel has counted of a stint. Then its beginning or its end is moved, so that what a thread
// was told to run is what the kernel says: the boundary between ready and running is the kernel's. What cannot be moved, since
// something of that thread was told already that is later, is made up for at its next comings, if it was told too much.

const (
	// mostExcess is how much is remembered of what a thread was told too much or too little, in nanoseconds: beyond that,
	// what was measured stays.
	mostExcess = 100_000_000
	// queuedAgain is from where on a thread that is ready for less than since its wake-up has been moved meanwhile, in
	// nanoseconds. Below it, what is written of the one is later than what is written of the other.
	queuedAgain = 2000
	// share is which part of a stint makes up for earlier ones at most.
	share = 8
)

// moved is the tick of an event, whose tick was measured, after its boundary was moved to the kernel's: not before what this
// thread was told, nor before what was known to be complete, nor past what will be.
func (w *Watcher) moved(t *thread, e *told, tick uint64) uint64 {
	var want int64 // nanoseconds later
	switch e.kind {
	case In:
		if t.state != ready {
			return tick
		}
		// Too little isn't made up for: another thread was on the processor before.
		want = e.shift + min(max(t.excess, 0), e.length/share)
	case Preempted, Blocked, Uninterruptible, Ended:
		if t.state != running {
			return tick
		}
		want = e.shift
	default:
		return tick
	}
	if want == 0 && e.excess == 0 || w.clock.rate <= 0 {
		return tick
	}
	to := w.clock.ticks(uint64(int64(e.time) + want))
	ideal := to
	// Bound is as it was told before this drain.
	if to = max(min(to, max(w.coming, tick)), min(w.bound, tick)); to < w.lossEnd {
		to = tick
	}
	to = max(to, t.last)
	off := want - e.shift
	if to != ideal {
		off += int64(math.Round(float64(int64(to-ideal)) / w.clock.rate))
	}
	if e.kind == In {
		off = -off
	}
	t.excess = min(max(t.excess+off+e.excess, -mostExcess), mostExcess)
	return to
}

// hold keeps a wake-up until the thread's next event, or the end of this drain: the kernel's count of what the thread runs may
// begin a moment before the wake-up is told.
func (w *Watcher) hold(t *thread, e Event) {
	if !w.source.wakeUps() {
		w.give(t, e)
		return
	}
	t.woke, t.holding = e, true
	if !t.listed {
		t.listed = true
		w.held = append(w.held, t)
	}
}

// letGo gives the wake-up that is kept of a thread, which is no later than its next event.
func (w *Watcher) letGo(t *thread, tick uint64) {
	if !t.holding {
		return
	}
	t.holding = false
	t.woke.Time = min(t.woke.Time, tick)
	w.give(t, t.woke)
}

// wasQueued moves the wake-up that is kept of a thread to where the kernel counts from, now that it comes: some tenths of a
// microsecond before that is told.
func (w *Watcher) wasQueued(t *thread, e *told, tick uint64) {
	if !t.holding || e.queued == 0 || w.clock.rate <= 0 {
		return
	}
	since := tick - min(tick, uint64(math.Round(float64(e.queued)*w.clock.rate)))
	if float64(since) > float64(t.woke.Time)+queuedAgain*w.clock.rate {
		return // it has come from another processor's queue, where it had been ready, too
	}
	t.woke.Time = max(since, min(t.woke.Time, max(t.last, w.bound)))
}

func (w *Watcher) letAllGo() {
	for _, t := range w.held {
		t.listed = false
		w.letGo(t, math.MaxUint64)
	}
	w.held = slices.Delete(w.held, 0, len(w.held))
}
