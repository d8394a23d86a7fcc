package timeline

import (
	"context"

	"github.com/callreel/callreel/reel"
)

// states adds the states of lanes to the answer. A quick one has only those that are summed up already, or nearly.
func (v *view) states(ctx context.Context, workers int, q *Query, answer *View) error {
	var list []*lane
	asked := map[*lane]bool{}
	for i := range v.lanes {
		l := v.lanes[i].l
		if l.states == nil || asked[l] {
			continue
		}
		asked[l] = true
		if (q.Quick || q.Summed) && !l.states.little && !l.states.known.Load() {
			answer.Unsummed = true
			answer.Coarse = answer.Coarse || !q.Summed // the same query without Quick has them
			continue
		}
		list = append(list, l)
	}
	out := make([]LaneStates, len(list))
	err := parallel(workers, len(list), func(i int) {
		if ctx.Err() == nil {
			out[i] = LaneStates{list[i].ID, v.s.stateSpans(list[i], v.from, min(v.to, v.s.end+1), v.grain)}
		}
	})
	answer.States = out
	return err
}

// stateSpans are a lane's states in a range. Cells of one state become one.
func (s *snapshot) stateSpans(l *lane, from, to uint64, grain uint) []StateSpan {
	if from >= to {
		return nil
	}
	c := s.stateCells(l, from, to, grain)
	var list []StateSpan
	for i := 0; i < len(c.cells); {
		x, n := c.cells[i], 1
		if x == (stateSums{}) {
			i++
			continue
		}
		for x.whole(&x, 1<<grain) && i+n < len(c.cells) && c.cells[i+n].whole(&x, 1<<grain) {
			n++
		}
		start := c.first + uint64(i)
		a, b := s.clock.toNS(start<<grain), s.clock.toNS((start+uint64(n))<<grain)
		for k := 1; k < n; k++ {
			x.add(&c.cells[i+k])
		}
		list = append(list, StateSpan{
			Start: a, Duration: b - a, Running: s.clock.toNS(x.running), Ready: s.clock.toNS(x.ready), Blocked: s.clock.toNS(x.blocked),
			Uninterruptible: s.clock.toNS(x.uninterruptible), Minor: x.minor, Major: x.major,
		})
		i += n
	}
	return list
}

// StateAt is the state that a lane's thread is in at a time, with its true beginning and end in nanoseconds. ok is false where nothing is
// said of it.
func (t *Timeline) StateAt(lane uint32, at uint64) (x reel.StateInterval, ok bool) {
	s := t.live.Load()
	if uint64(lane) >= uint64(len(s.lanes)) || s.lanes[lane].states == nil {
		return x, false
	}
	tick := s.clock.toTicks(at) + s.clock.first
	r := s.f.States(s.lanes[lane].Thread)
	r.Seek(tick)
	x, ok = r.Next()
	if !ok || x.From > tick {
		return reel.StateInterval{}, false
	}
	x.From, x.To = s.clock.toNS(s.clock.rel(x.From)), s.clock.toNS(s.clock.rel(x.To))
	return x, true
}

// StateTimes sums up what a lane's thread did from one tick until another, in ticks.
func (t *Timeline) StateTimes(lane uint32, from, to uint64) (sum reel.StateTimes, ok bool) {
	s := t.live.Load()
	if uint64(lane) >= uint64(len(s.lanes)) || s.lanes[lane].states == nil {
		return sum, false
	}
	x := s.stateTimes(s.lanes[lane], s.clock.rel(from), s.clock.rel(to))
	return reel.StateTimes{Running: x.running, Ready: x.ready, Blocked: x.blocked}, true
}
