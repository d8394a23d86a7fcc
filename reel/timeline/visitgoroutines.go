package timeline

import "github.com/callreel/callreel/reel"

// goroutineVisits are the replays of a Go program's lanes, which share threads.
type goroutineVisits struct {
	*visit
	lanes  map[goroutineLane]uint32
	wanted map[uint32]bool // nil for all
	open   map[uint32]*laneVisit
	free   []*laneVisit
}

// goroutineLane is what a lane is of: a goroutine, or the own stack of a thread.
type goroutineLane struct {
	goroutine uint64
	thread    uint32 // for 0
}

// goroutines replays lanes of goroutines as reel.Summarize does, from the
// reel's beginning, and on behind the range until no call of it is open.
func (x *visit) goroutines(lanes []uint32) {
	g := &goroutineVisits{visit: x, lanes: map[goroutineLane]uint32{}, open: map[uint32]*laneVisit{}}
	if lanes != nil {
		g.wanted = map[uint32]bool{}
		for _, lane := range lanes {
			g.wanted[lane] = true
		}
	}
	for _, l := range x.s.lanes {
		key := goroutineLane{goroutine: l.Goroutine}
		if l.Goroutine == 0 {
			key.thread = l.Thread
		}
		g.lanes[key] = l.ID
	}
	x.s.f.ReadGoroutines(func(id uint64, thread uint32, events []reel.Event, lost bool) bool {
		if lost { // those of whom events are missing aren't known
			for _, l := range g.open {
				l.pairer.Lost()
			}
		}
		key := goroutineLane{goroutine: id}
		if id == 0 {
			key.thread = thread
		}
		if lane, ok := g.lanes[key]; ok && (g.wanted == nil || g.wanted[lane]) {
			g.take(lane, events)
		}
		return !x.over() && (x.s.clock.rel(events[0].Time) < x.to || x.entered > 0)
	})
	for lane, l := range g.open {
		if x.over() {
			return
		}
		if !l.begun {
			l.begin()
		}
		l.pairer.Finish(x.s.f.LastTick())
		delete(g.open, lane)
	}
}

func (g *goroutineVisits) take(lane uint32, events []reel.Event) {
	l := g.open[lane]
	if l == nil {
		l = g.visitFor(lane, events[0].Time)
	}
	l.take(events, g.untilTime)
	if g.s.f.Ends(events) {
		l.pairer.Left()
	}
	if l.pairer.Open() == 0 {
		l.pairer.Finish(0) // as new
		delete(g.open, lane)
		g.free = append(g.free, l)
	}
}

// visitFor gives a replay for a lane without open calls.
func (g *goroutineVisits) visitFor(lane uint32, now uint64) *laneVisit {
	l := &laneVisit{visit: g.visit, pairer: &reel.Pairer{}}
	if n := len(g.free); n > 0 {
		l, g.free = g.free[n-1], g.free[:n-1]
	} else {
		l.pairer.OnEntry, l.pairer.OnCall, l.push = l.enter, l.end, l.pairer.Push
	}
	l.lane, l.begun, l.past = lane, false, false
	l.pairer.SetTime(now)
	g.open[lane] = l
	return l
}
