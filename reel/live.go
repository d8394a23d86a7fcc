package reel

import (
	"math"
	"sync/atomic"
)

// LiveTally sums up calls while they are made: what [Summarize] says of a whole reel, for one stretch of time after the other, and with
// no reel. It is used by one goroutine, but for Known.
//
// A call counts in the stretch in which it began. Its time of its own counts as it passes, also while the call goes on, and its
// duration where it ends. Memory is bounded whatever events say: by the functions that are known and by maxLiveOpen.
type LiveTally struct {
	known   atomic.Uint32
	goexit  atomic.Uint32
	sums    *LiveSums
	spare   []*LiveSums
	threads []*LiveThread
	open    int // calls of all lanes
	ignored uint64
	routine *liveGoroutines // nil if the program isn't a Go program's
}

const (
	// maxLiveOpen is how many calls may be open over all threads, at 40 bytes each; entries beyond it are ignored and counted.
	maxLiveOpen = 1 << 21
	// keptCalls is how many open calls a lane keeps room for that has fewer.
	keptCalls = 1 << 10
)

// NewLiveTally returns a tally that knows no function yet; goroutines says that the threads' events are those of goroutines.
func NewLiveTally(goroutines bool) *LiveTally {
	t := &LiveTally{sums: new(LiveSums)}
	if goroutines {
		t.routine = newLiveGoroutines(t)
	}
	return t
}

// Known tells of functions, the last of them with that ID: events of others count for function 0. goexit is the one among them
// in which goroutines end, 0 if it isn't; the first one counts, as in reels. It may be called by another goroutine than the rest, before the functions' first events.
func (t *LiveTally) Known(last, goexit uint32) {
	t.known.Store(last)
	t.goexit.CompareAndSwap(0, goexit)
}

// at returns the function's sums.
func (t *LiveTally) at(id uint32) *liveFunction { return t.sums.make(id, t.known.Load()) }

// meet makes a function's sums and returns where they are: at 0 if nobody knows it.
//
//go:noinline
func (t *LiveTally) meet(id uint32) uint32 {
	if id > t.known.Load() {
		id = 0
	}
	t.at(id)
	return id
}

// LiveThread is a thread of a LiveTally.
type LiveThread struct {
	Key     uint32
	tally   *LiveTally
	own     liveLane
	calls   uint64
	dropped uint64
	ended   bool
	queue   liveQueue // of a Go program
}

// Thread begins with a thread, which gets that key in Threads.
func (t *LiveTally) Thread(key uint32) *LiveThread {
	l := &LiveThread{Key: key, tally: t}
	l.own.begin(t)
	t.threads = append(t.threads, l)
	return l
}

// Push takes the thread's next events; it doesn't keep them.
func (l *LiveThread) Push(events []Event) {
	if l.tally.routine != nil {
		l.tally.routine.queue(l, events)
		return
	}
	_, entries := l.own.push(events, math.MaxUint64)
	l.calls += entries
}

// Dropped says that so many entries were dropped with their exits, and so many exits without their entries.
func (l *LiveThread) Dropped(entries, exits uint64) {
	l.dropped += entries
	l.tally.sums.Dropped += entries
	l.tally.sums.LostExits += exits
	if exits > 0 {
		l.own.pairer.Lost()
	}
}

// End ends the thread's calls, at that tick.
func (l *LiveThread) End(tick uint64) {
	if l.tally.routine != nil {
		l.tally.routine.drain(l)
	}
	l.own.finish(tick)
	l.ended = true
}

// Round says that all events of before that tick have been pushed.
func (t *LiveTally) Round(tick uint64) {
	if t.routine != nil {
		t.routine.merge(tick)
	}
}

// Take ends the stretch at that tick and returns its sums, which the caller may give back by Reuse.
func (t *LiveTally) Take(tick uint64) *LiveSums {
	s := t.sums
	for _, l := range t.threads {
		l.own.settle(tick)
	}
	if t.routine != nil {
		t.routine.settle(tick)
	}
	s.End = tick
	s.Ignored, t.ignored = t.ignored, 0
	s.Threads = s.Threads[:0]
	for _, l := range t.threads {
		s.Threads = append(s.Threads, l.take())
	}
	t.threads = deleteEnded(t.threads)
	if n := len(t.spare); n > 0 {
		t.sums, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		t.sums = new(LiveSums)
	}
	t.sums.Start = tick
	return s
}

// Begin says when the first stretch begins.
func (t *LiveTally) Begin(tick uint64) { t.sums.Start = tick }

// Reuse takes sums back that nobody needs any more.
func (t *LiveTally) Reuse(s *LiveSums) {
	s.Clear()
	t.spare = append(t.spare, s)
}

func deleteEnded(threads []*LiveThread) []*LiveThread {
	kept := threads[:0]
	for _, l := range threads {
		if !l.ended {
			kept = append(kept, l)
		}
	}
	clear(threads[len(kept):])
	return kept
}

// lane is that of the goroutine that the thread runs, nil if that has no open call, or else of the thread's own stack.
func (l *LiveThread) lane() *liveLane {
	if id := l.queue.goroutine; id != 0 {
		return l.tally.routine.lanes[id]
	}
	return &l.own
}

// Open is the entry of a call that is open, 0 for the innermost, 1 for that which it is within; false if there is none. In a Go program it
// isn't known.
func (l *LiveThread) Open(outward int) (e Event, open bool) {
	p := &l.own.pairer
	if l.tally.routine != nil || p.cur >= len(p.stacks) {
		return e, false
	}
	calls := p.stacks[p.cur].calls
	if outward < 0 || outward >= len(calls) {
		return e, false
	}
	c := &calls[len(calls)-1-outward]
	return Entry(c.start, c.sp, c.id), true
}

// Forget ends the innermost open call without counting it any further: nobody knows when it has ended, or whether. In a Go program it does nothing.
func (l *LiveThread) Forget() {
	p := &l.own.pairer
	if _, open := l.Open(0); !open {
		return
	}
	s := &p.stacks[p.cur]
	s.calls = s.calls[:len(s.calls)-1]
	p.open--
	l.tally.open--
	if p.cur < len(l.own.credits) {
		credit := &l.own.credits[p.cur]
		credit.self = credit.self[:min(len(credit.self), len(s.calls))]
	}
}

// take is what the thread did since the last take, and where it is.
func (l *LiveThread) take() LiveThreadSums {
	s := LiveThreadSums{Key: l.Key, Calls: l.calls, Dropped: l.dropped, Ended: l.ended}
	l.calls, l.dropped = 0, 0
	lane := l.lane()
	if lane == nil || l.ended {
		return s
	}
	p := &lane.pairer
	if p.cur < len(p.stacks) {
		calls := p.stacks[p.cur].calls
		s.Depth = len(calls)
		if s.Depth > 0 {
			s.Function, s.Since = calls[s.Depth-1].id, calls[s.Depth-1].start
		}
	}
	return s
}
