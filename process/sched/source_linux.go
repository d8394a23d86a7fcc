package sched

// told is what a source says of one thread.
type told struct {
	time     uint64 // nanoseconds of the source's clock
	pid, tid int32
	cpu      int32
	kind     Kind // or one of the kinds below
	waker    int32
	syscall  int32
	args     [3]uint64
	address  uint64

	// Nanoseconds, of a source that knows how much the kernel has counted of a stint.
	shift  int64 // by how much the moment is to be moved, so that the stint is as long as the kernel's
	length int64 // of In: how long the stint is, if that is known
	queued int64 // of In: for how long it has been ready; 0 where that isn't known
	excess int64 // of leavings: by how much the stint is too long after all that
}

// What sources say beside events' kinds.
const (
	born    Kind = 128 + iota // a thread begins; the waker is its maker
	execed                    // the process runs a new program: of its threads only this one is left
	skipped                   // nothing of interest
)

// window is a stretch of time in which a processor's ring has lost something: after from, up to to.
type window struct {
	from, to uint64
	count    uint64
}

// ring is what one processor has written.
type ring interface {
	load(limit uint64)            // looks at what there is
	windows() []window            // what was lost in what there is, as known at load
	bound(limit uint64) uint64    // up to when nothing more will come, at most limit
	peek() (time uint64, ok bool) // the next record's
	take(out *[2]told) int        // reads it
	release()                     // gives the room back
}

// source is a way to learn of the scheduler.
type source interface {
	name() string
	clock() int32                  // CLOCK_…
	wakeUps() bool                 // tells when threads become ready
	repeats() bool                 // may tell a thing twice
	late() uint64                  // nanoseconds: how far back a moment may still be moved
	add(pid int, tids []int) error // watches a process, or more of its threads
	forget(pid int)                // the process has ended
	rings() []ring
	faults() error       // why page faults that were asked for aren't told
	minorsEnded() uint64 // nanoseconds of the clock: since when minor faults aren't told, since they were too many; else 0
	stop() error         // nothing more is written; what is there can be read
	close() error
}

func asRings[R ring](in []R) []ring {
	out := make([]ring, len(in))
	for i, r := range in {
		out[i] = r
	}
	return out
}
