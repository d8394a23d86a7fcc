package export

import "github.com/callreel/callreel/reel"

// speedscopeWeighed is a lane's profile of the time in one state. A call is told when the first of that time has passed in it, or never.
type speedscopeWeighed struct {
	spool spoolLane
	open  []int  // frames of the calls that are open
	told  int    // how many of them were told
	at    uint64 // ticks in that state that have passed in the lane's calls
	last  uint64 // at, of the last event
}

// weighLane is the lane of the next event. The time since the one before has passed on the lane of that.
func (s *speedscope) weighLane(l *lane) *speedscopeLane {
	d := l.data.(*speedscopeLane)
	if len(s.weights) == 0 {
		return d
	}
	if d.weighed == nil {
		d.weighed = make([]speedscopeWeighed, len(s.weights))
	}
	s.goOn(l.main, d)
	return d
}

// moved implements stackSink.
func (s *speedscope) moved(first, to *lane, known bool) {
	if known {
		s.weighLane(to)
		return
	}
	s.goOn(first, nil)
}

// goOn adds the time that has passed to where the thread, or goroutine, with the first lane was, and notes where it is now.
func (s *speedscope) goOn(first *lane, on *speedscopeLane) {
	f := first.data.(*speedscopeLane)
	if f.on != nil && s.did != f.did {
		for i, w := range s.weights {
			if ticks := timeIn(s.did.Minus(f.did), w.state()); ticks > 0 {
				s.pass(&f.on.weighed[i], ticks)
			}
		}
	}
	f.on, f.did = on, s.did
}

// pass adds time to a lane's open calls.
func (s *speedscope) pass(w *speedscopeWeighed, ticks uint64) {
	if len(w.open) == 0 {
		return
	}
	for ; w.told < len(w.open); w.told++ {
		s.weighedEvent(w, uint64(w.open[w.told])<<1)
	}
	w.at += ticks
}

func (s *speedscope) weighBegin(l *lane, call *reel.Call) {
	d := s.weighLane(l)
	for i := range d.weighed {
		w := &d.weighed[i]
		w.open = append(w.open, s.frame(call.Func))
	}
}

func (s *speedscope) weighEnd(l *lane) {
	d := s.weighLane(l)
	for i := range d.weighed {
		w := &d.weighed[i]
		n := len(w.open) - 1
		if w.told > n {
			w.told = n
			s.weighedEvent(w, uint64(w.open[n])<<1|1)
		}
		w.open = w.open[:n]
	}
}

func (s *speedscope) weighedEvent(w *speedscopeWeighed, kind uint64) {
	if s.err == nil {
		s.err = s.spool.add(&w.spool, kind, w.at-w.last)
	}
	w.last = w.at
}

// weighedProfiles writes a lane's profiles of other times than that of the clock.
func (s *speedscope) weighedProfiles(d *speedscopeLane) {
	for i := range d.weighed {
		w := &d.weighed[i]
		if w.at == 0 {
			continue // and nothing is in its spool
		}
		value := func(at int64) int64 { return int64(s.f.Clock().Nanoseconds(uint64(at))) }
		s.profile()
		s.fromSpool(d, &w.spool, value)
		s.spool.drop(&w.spool)
		s.ended(value(int64(w.at)), d.title(s.weights[i].title()))
	}
	d.weighed = nil
}

// title is what a profile is of, behind its name.
func (w Weight) title() string {
	switch w {
	case WeightCPU:
		return ", CPU time"
	case WeightReady:
		return ", time ready"
	}
	return ", time blocked"
}
