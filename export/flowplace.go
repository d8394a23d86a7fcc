package export

import (
	"slices"

	"github.com/callreel/callreel/reel"
)

// flowPoint is where an arrow begins or ends while no span is open: in the call that is.
type flowPoint struct {
	tick uint64
	// open is the lane with the innermost open call, and since when at least it is, in its own time; nil if none is, or it isn't known yet.
	open  *lane
	since int64
	known bool
}

// maxFlowPoints bounds what is kept of them; further ones have places of their own.
const maxFlowPoints = 1 << 16

// flowPoints are those of each thread, or goroutine, in order of time.
type flowPoints struct {
	of      map[laneKey][]*flowPoint
	n       int
	strands map[laneKey]*strand // that have calls
}

// add notes a point.
func (p *flowPoints) add(k laneKey, tick uint64) {
	if p.n >= maxFlowPoints {
		return
	}
	if p.of == nil {
		p.of, p.strands = map[laneKey][]*flowPoint{}, map[laneKey]*strand{}
	}
	p.of[k] = append(p.of[k], &flowPoint{tick: tick})
	p.n++
}

// at is the lane with the innermost call that is open at a point, and the time there; nil if none is.
func (p *flowPoints) at(k laneKey, tick uint64) (*lane, int64) {
	list := p.of[k]
	i, ok := slices.BinarySearchFunc(list, tick, func(x *flowPoint, t uint64) int {
		switch {
		case x.tick < t:
			return -1
		case x.tick > t:
			return 1
		}
		return 0
	})
	switch s := p.strands[k]; {
	case !ok:
		return nil, 0
	case list[i].known:
		return list[i].open, list[i].since
	case s != nil && s.depth > 0 && s.on != nil: // its next event is still to come
		return s.on, s.on.last
	}
	return nil, 0
}

// place notes what is open at the points before a tick, or at it, as the strand's next event is there.
func (s *strand) place(tick uint64, with bool) {
	if s.points == nil {
		if s.points = []*flowPoint{}; s.flowPoints != nil && s.flowPoints.n > 0 {
			k := keyOf(s.thread.Key, s.goroutine)
			s.points = s.flowPoints.of[k]
			s.flowPoints.strands[k] = s
		}
	}
	for len(s.points) > 0 && (s.points[0].tick < tick || with && s.points[0].tick == tick) {
		x := s.points[0]
		if s.points = s.points[1:]; len(s.points) == 0 {
			s.points = []*flowPoint{}
		}
		if x.known = true; s.depth > 0 && s.on != nil {
			x.open, x.since = s.on, s.on.last
		}
	}
}

// flowPlace is where an end of an arrow is: in the innermost span that is open, else the innermost call, else alone.
func (m *markWalk) flowPlace(thread uint32, goroutine, tick uint64) (l *lane, at int64, alone bool) {
	k := keyOf(thread, goroutine)
	main := m.lanes[markLaneKey{k, pairKey{}}]
	if main == nil && len(m.before[markLaneKey{k, pairKey{}}]) > 0 {
		main = m.lane(thread, goroutine)
	}
	var best *markLane
	since := func(l *markLane) uint64 {
		if len(l.open) > 0 {
			return l.open[len(l.open)-1].span.Begin
		}
		return 0
	}
	for _, l := range append([]*markLane{main}, m.beside[k]...) {
		if l != nil && l.enclosed() && (best == nil || since(l) > since(best)) {
			best = l
		}
	}
	if best != nil {
		return &best.lane, m.timeIn(best, tick), false
	}
	if call, since := m.points.at(k, tick); call != nil && !m.untimed {
		return call, max(m.at(tick), since), false
	}
	main = m.lane(thread, goroutine)
	return &main.lane, m.timeIn(main, tick), true
}

func (m *markWalk) out(f *reel.Flow) {
	l, at, alone := m.flowPlace(f.FromThread, f.FromGoroutine, f.From)
	f.Tag = m.sink.flowOut(l, at, m.say(f.Title), alone)
}

func (m *markWalk) in(f *reel.Flow) {
	l, at, alone := m.flowPlace(f.ToThread, f.ToGoroutine, f.To)
	m.sink.flowIn(l, at, m.say(""), f.Tag, alone)
}
