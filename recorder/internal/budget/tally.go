package budget

import (
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/reel"
)

// Tally counts the calls of a recording. It belongs to the goroutine that reads the rings.
type Tally struct {
	sums *reel.LiveTally
	keys uint32
	were int    // functions that were called in the last stretch
	last uint64 // the latest event
	left bool   // the last round has left some that were there
	// events is how many there were since the last stretch. The keeper is to look at once when there are more than next, which goes on by soon
	// each time, in case it doesn't; 0 is for never.
	events, next, soon int
	bursts             chan struct{}
	// listens says that the keeper waits for that, or has been told and hasn't done anything about it yet.
	listens atomic.Bool
	// giveWay is for how long the keeper is let act, at most.
	giveWay time.Duration
	// usual is how long calls of functions take, in ticks: the 99th percentile, the longest of the last stretches.
	usual map[uint32]uint64
}

// NewTally returns a tally that has counted nothing; goroutines says that events are those of goroutines.
func NewTally(goroutines bool, now uint64) *Tally {
	t := &Tally{sums: reel.NewLiveTally(goroutines), usual: map[uint32]uint64{}, bursts: make(chan struct{}, 1), giveWay: mostGivenWay}
	t.sums.Known(reel.MaxID, 0)
	t.sums.Begin(now)
	return t
}

// Thread begins with a thread. Its events have the target's numbers of functions.
func (t *Tally) Thread() *reel.LiveThread {
	t.keys++
	return t.sums.Thread(t.keys)
}

// Saw notes how many events of a thread were counted, and the tick of the last. burst says that there were so many that the keeper is to look
// at once: who reads the rings should let it, see GiveWay.
func (t *Tally) Saw(events int, tick uint64) (burst bool) {
	t.last = max(t.last, tick)
	if t.events += events; t.soon == 0 || t.events <= t.next {
		return false
	}
	t.next = t.events + t.soon
	select {
	case t.bursts <- struct{}{}:
		return true
	default:
		return false
	}
}

const (
	// mostGivenWay is for how long the keeper is let act, at most, and giveWayStep how soon it is noticed that it has.
	mostGivenWay = 3 * time.Millisecond
	giveWayStep  = 50 * time.Microsecond
)

// GiveWay lets the keeper act on a burst before more is read: the program and who reads the rings may need all processors, and the longer it
// takes the more there is to be read. serve calls what is asked to be called soon by who reads the rings.
func (t *Tally) GiveWay(serve func()) {
	left := t.left
	t.left = true // there is more
	for begun := time.Now(); t.listens.Load() && time.Since(begun) < t.giveWay; {
		serve()
		time.Sleep(giveWayStep)
	}
	t.left = left
}

// Round ends a round of reading; left says that there was more than it has read.
func (t *Tally) Round(left bool) { t.left = left }

// forgets is the part of a function's usual time that is forgotten in a stretch in which its calls took less.
const forgets = 64

// Usual is how long calls of a function take as a rule, in ticks: 99 of a hundred took no longer lately. 0 if none has ended.
func (t *Tally) Usual(id uint32) uint64 { return t.usual[id] }

// typical is how many of a hundred calls count for Mean and Beneath, the shortest: the longest are those that waited, or for a processor.
const typical = 90

// take ends a stretch of time, which began with the one before, and returns what was called in it, how many calls were dropped (of which
// functions isn't known), and up to when that is: events are read late when there are too many.
// Behind it the keeper is woken by Bursts when there were more than soon events.
func (t *Tally) take(now, perSecond uint64, soon int) (list []Function, dropped, until uint64) {
	until, t.events, t.next, t.soon = now, 0, soon, soon
	if t.left && t.last < now {
		until = t.last
	}
	t.sums.Round(now)
	s := t.sums.Take(now)
	ns := 1e9 / float64(perSecond)
	list = make([]Function, 0, t.were+t.were/4)
	for id, f := range s.Functions {
		p99, _ := s.Percentile(id, 99)
		half, _ := s.Percentile(id, 50)
		mean, beneath, ended := s.Typical(id, typical)
		if was := t.usual[id]; p99 > 0 {
			t.usual[id] = max(p99, was-was/forgets)
		}
		list = append(list, Function{ID: id, Calls: f.Calls, P99: float64(p99) * ns, Max: float64(f.Max) * ns, Half: float64(half) * ns, Self: float64(f.Self) * ns,
			Ended: ended, Mean: mean * ns, Beneath: beneath})
	}
	t.were, dropped = len(list), s.Dropped
	t.sums.Reuse(s)
	return list, dropped, until
}
