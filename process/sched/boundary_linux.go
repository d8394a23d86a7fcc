package sched

import "math"

// A source may know how much the kernel has counted of a stint. Then its beginning or its end is moved, so that what a thread
// was told to run is what the kernel says: the boundary between ready and running is the kernel's. What cannot be moved, since
// something of that thread was told already that is later, is made up for at its next comings.

const (
	// mostExcess is how much is remembered of what a thread was told too much or too little, in nanoseconds: beyond that,
	// what was measured stays.
	mostExcess = 10_000_000
	// share is which part of a stint makes up for earlier ones at most.
	share = 8
)

// moved is the tick of an event, whose tick was measured, after its boundary was moved to the kernel's: not before what this
// thread was told, nor before what was known to be complete, nor past what will be.
func (w *Watcher) moved(t *thread, e *told, tick uint64) uint64 {
	if w.clock.rate <= 0 {
		return tick // no time has passed
	}
	var want int64 // nanoseconds later
	switch e.kind {
	case In:
		if t.state != ready {
			return tick
		}
		if want = e.shift + min(max(t.excess, 0), e.length/share); want == 0 {
			return tick
		}
	case Preempted, Blocked, Uninterruptible:
		if t.state != running || e.shift == 0 && e.excess == 0 {
			return tick
		}
		want = e.shift
	default:
		return tick
	}
	to := tick
	if want != 0 {
		to = min(w.clock.ticks(uint64(int64(e.time)+want)), max(w.clock.ticks(w.coming), tick))
		// What w.bound is now was told before this drain.
		if to = max(to, min(w.bound, tick)); to < w.lossEnd {
			to = tick
		}
	}
	to = max(to, t.last)
	// How far that is from where it was to be, also for want of room.
	off := int64(math.Round(float64(int64(to-tick))/w.clock.rate)) - e.shift
	if e.kind == In {
		off = -off
	} else {
		off += e.excess
	}
	t.excess = min(max(t.excess+off, -mostExcess), mostExcess)
	return to
}
