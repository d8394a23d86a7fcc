package viewer

import (
	"math"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// laneClocks say what lanes' threads have done, in a replay of a piece: what comes before it or behind it doesn't count. Lanes come one after the
// other. Of lanes without states nothing is known, and nothing in a Go program: what its goroutines did is only known to who has seen all events
// from the beginning on.
type laneClocks struct {
	f     *reel.File
	lanes []timeline.Lane
	piece *piece
	lane  uint32
	clock *reel.ThreadClock // of the lane, nil if it has no states
	any   bool              // lane is one of this piece
}

// newLaneClocks returns nil if no states are known.
func newLaneClocks(tl *timeline.Timeline) *laneClocks {
	f := tl.File()
	if !f.HasStates() {
		return nil
	}
	return &laneClocks{f: f, lanes: tl.Lanes()}
}

func (c *laneClocks) begin(p *piece) {
	if c != nil {
		c.piece, c.any = p, false
	}
}

// at is what the lane's thread has done up to a tick, since some moment of the piece.
func (c *laneClocks) at(lane uint32, tick uint64) reel.StateTimes {
	if c == nil {
		return reel.StateTimes{}
	}
	if !c.any || c.lane != lane {
		c.any, c.lane, c.clock = true, lane, nil
		if l := &c.lanes[lane]; l.States && !c.f.Header().Goroutines {
			r := c.f.States(l.Thread)
			r.Seek(c.piece.start)
			c.clock = reel.NewThreadClock(r)
		}
	}
	if c.clock == nil {
		return reel.StateTimes{}
	}
	return c.clock.At(min(max(tick, c.piece.start), c.piece.end, math.MaxUint64-1))
}

// stateOf is the part of a time in one of the states that requests are by; wall is all of it.
func stateOf(by string, ticks uint64, s reel.StateTimes) uint64 {
	switch by {
	case "cpu":
		return s.Running
	case "ready":
		return s.Ready
	case "blocked":
		return s.Blocked
	}
	return ticks
}

// clocksFor are the clocks that a replay by a state needs.
func clocksFor(by string, tl *timeline.Timeline) *laneClocks {
	if by == byStates[0] {
		return nil
	}
	return newLaneClocks(tl)
}

// byStates are the words of stateOf.
var byStates = []string{"wall", "cpu", "ready", "blocked"}
