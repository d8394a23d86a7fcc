package budget

import (
	"github.com/callreel/callreel/reel"
)

// Tally counts the calls of a recording. It belongs to the goroutine that reads the rings.
type Tally struct {
	sums *reel.LiveTally
	keys uint32
}

// NewTally returns a tally that has counted nothing; goroutines says that events are those of goroutines.
func NewTally(goroutines bool, now uint64) *Tally {
	t := &Tally{sums: reel.NewLiveTally(goroutines)}
	t.sums.Known(reel.MaxID, 0)
	t.sums.Begin(now)
	return t
}

// Thread begins with a thread. Its events have the target's numbers of functions.
func (t *Tally) Thread() *reel.LiveThread {
	t.keys++
	return t.sums.Thread(t.keys)
}

// take ends a stretch of time, which began with the one before, and returns what was called in it, and how many calls were dropped: of which
// functions isn't known.
func (t *Tally) take(now, perSecond uint64) (list []Function, dropped uint64) {
	t.sums.Round(now)
	s := t.sums.Take(now)
	ns := 1e9 / float64(perSecond)
	for id, f := range s.Functions {
		p99, _ := s.Percentile(id, 99)
		half, _ := s.Percentile(id, 50)
		list = append(list, Function{ID: id, Calls: f.Calls, P99: float64(p99) * ns, Max: float64(f.Max) * ns, Half: float64(half) * ns, Self: float64(f.Self) * ns})
	}
	dropped = s.Dropped
	t.sums.Reuse(s)
	return list, dropped
}
