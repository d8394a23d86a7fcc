package budget

import (
	"github.com/callreel/callreel/reel"
)

// Tally counts the calls of a recording. It belongs to the goroutine that reads the rings.
type Tally struct {
	sums *reel.LiveTally
	keys uint32
	last uint64 // the latest event
	left bool   // the last round has left some that were there
	// usual is how long calls of functions take, in ticks: the 99th percentile, the longest of the last stretches.
	usual map[uint32]uint64
}

// NewTally returns a tally that has counted nothing; goroutines says that events are those of goroutines.
func NewTally(goroutines bool, now uint64) *Tally {
	t := &Tally{sums: reel.NewLiveTally(goroutines), usual: map[uint32]uint64{}}
	t.sums.Known(reel.MaxID, 0)
	t.sums.Begin(now)
	return t
}

// Thread begins with a thread. Its events have the target's numbers of functions.
func (t *Tally) Thread() *reel.LiveThread {
	t.keys++
	return t.sums.Thread(t.keys)
}

// Saw notes the tick of a thread's last event.
func (t *Tally) Saw(tick uint64) { t.last = max(t.last, tick) }

// Round ends a round of reading; left says that there was more than it has read.
func (t *Tally) Round(left bool) { t.left = left }

// forgets is the part of a function's usual time that is forgotten in a stretch in which its calls took less.
const forgets = 64

// Usual is how long calls of a function take as a rule, in ticks: 99 of a hundred took no longer lately. 0 if none has ended.
func (t *Tally) Usual(id uint32) uint64 { return t.usual[id] }

// take ends a stretch of time, which began with the one before, and returns what was called in it, how many calls were dropped (of which
// functions isn't known), and up to when that is: events are read late when there are too many.
func (t *Tally) take(now, perSecond uint64) (list []Function, dropped, until uint64) {
	until = now
	if t.left && t.last < now {
		until = t.last
	}
	t.sums.Round(now)
	s := t.sums.Take(now)
	ns := 1e9 / float64(perSecond)
	for id, f := range s.Functions {
		p99, _ := s.Percentile(id, 99)
		half, _ := s.Percentile(id, 50)
		if was := t.usual[id]; p99 > 0 {
			t.usual[id] = max(p99, was-was/forgets)
		}
		list = append(list, Function{ID: id, Calls: f.Calls, P99: float64(p99) * ns, Max: float64(f.Max) * ns, Half: float64(half) * ns, Self: float64(f.Self) * ns})
	}
	dropped = s.Dropped
	t.sums.Reuse(s)
	return list, dropped, until
}
