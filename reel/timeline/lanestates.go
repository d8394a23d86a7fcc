package timeline

import (
	"context"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/reel"
)

// laneStates are the states of a thread, summed up when they are first asked for.
type laneStates struct {
	once     sync.Once
	known    atomic.Bool // segments are there
	segments []stateSegment
	little   bool        // there is to sum up, as old has most of it
	old      *laneStates // of the reel before it grew: what is settled in it is taken over
}

// findStates gives lanes their states: those of threads, not of goroutines, which go from one thread to the other.
func (s *snapshot) findStates(old *snapshot) {
	known := !s.clock.untimed && s.f.HasStates()
	for i, l := range s.lanes {
		l.states, l.States = nil, false
		if !known || l.Goroutine != 0 {
			continue
		}
		if _, ok := s.f.States(l.Thread).Next(); !ok {
			continue
		}
		l.states, l.States = &laneStates{}, true
		if old != nil && i < len(old.lanes) {
			if o := old.lanes[i].states; o != nil && o.known.Load() {
				l.states.old, l.states.little = o, true
			}
		}
	}
}

// threadStates reads the states of a lane as intervals in ticks from the recording's start.
type threadStates struct {
	c      *clock
	r      *reel.StateReader
	cur    stateInterval
	more   bool         // cur is there
	faults []stateFault // read so far, and not taken
}

// readStates reads the states of a lane from the interval on that contains a time, or the first one behind it.
func (s *snapshot) readStates(l *lane, from uint64) *threadStates {
	r := &threadStates{c: &s.clock, r: s.f.States(l.Thread)}
	r.r.OnFault(func(f reel.Fault) { r.faults = append(r.faults, stateFault{r.c.rel(f.Time), f.Major}) })
	if from > 0 { // one tick less, for the page faults at that tick
		r.r.Seek(from + s.clock.first - 1)
	}
	for r.next(); r.more && r.cur.end <= from; {
		r.next()
	}
	return r
}

func (r *threadStates) next() {
	x, ok := r.r.Next()
	r.cur, r.more = stateInterval{r.c.rel(x.From), r.c.rel(x.To), x.State, x.Uninterruptible}, ok
}

// faultsBefore takes the page faults that come before a time.
func (r *threadStates) faultsBefore(at uint64) []stateFault {
	n := sort.Search(len(r.faults), func(i int) bool { return r.faults[i].at >= at })
	list := r.faults[:n]
	r.faults = r.faults[n:]
	return list
}

// addTo adds what is up to a time to cells, page faults from another time on.
func (r *threadStates) addTo(out *stateCells, from, to uint64) {
	for ; r.more; r.next() {
		x := r.cur
		x.start, x.end = max(x.start, from), min(x.end, to)
		out.interval(&x)
		if r.cur.end >= to {
			break
		}
	}
	for _, f := range r.faultsBefore(to) {
		if f.at >= from {
			out.fault(&f)
		}
	}
}

// statesOf are the states of a lane.
func (s *snapshot) statesOf(l *lane) *laneStates {
	x := l.states
	x.once.Do(func() {
		x.segments = s.sumStates(l, x.old)
		x.old = nil
		x.known.Store(true)
	})
	return x
}

// sumStates reads all states of a lane. What is behind the last whole segment is read again for each view: it is little, and while the
// reel grows its end becomes another.
func (s *snapshot) sumStates(l *lane, old *laneStates) []stateSegment {
	var list []stateSegment
	from := uint64(0)
	if old != nil && len(old.segments) > 0 {
		list = slices.Clone(old.segments)
		from = list[len(list)-1].end
	}
	r := s.readStates(l, from)
	r.faultsBefore(from)
	intervals := make([]stateInterval, 0, stateSegmentIntervals)
	for ; r.more; r.next() {
		if len(intervals) == cap(intervals) {
			list = append(list, newStateSegment(intervals, r.faultsBefore(r.cur.start)))
			intervals = intervals[:0]
		}
		intervals = append(intervals, r.cur)
	}
	return list
}

// SumStates sums up the states of all threads, which views then don't wait for, on so many goroutines; 0 are as many as the timeline has.
func (t *Timeline) SumStates(ctx context.Context, workers int) error {
	s := t.live.Load()
	if workers <= 0 {
		workers = t.workers()
	}
	return parallel(workers, len(s.lanes), func(i int) {
		if ctx.Err() == nil && s.lanes[i].states != nil {
			s.statesOf(s.lanes[i])
		}
	})
}

// stateCells sums up the states of a lane in the cells of 1<<grain ticks that reach into a range.
func (s *snapshot) stateCells(l *lane, from, to uint64, grain uint) stateCells {
	out := cellsOver(from, max(to, from+1), grain)
	from, to = out.first<<grain, out.end()
	var r *threadStates
	at := from // how far r is
	read := func(from, to uint64) {
		if from >= to {
			return
		}
		if r == nil || from != at {
			r = s.readStates(l, from)
		}
		r.addTo(&out, from, to)
		at = to
	}
	segments := s.statesOf(l).segments
	i := sort.Search(len(segments), func(i int) bool { return segments[i].end > from })
	for ; i < len(segments) && segments[i].start < to; i++ {
		seg := &segments[i]
		if level := seg.level(grain); level != nil {
			out.merge(level)
			continue
		}
		read(max(from, seg.start), min(to, seg.end))
	}
	if n := len(segments); n == 0 {
		read(from, to)
	} else {
		read(max(from, segments[n-1].end), to)
	}
	return out
}

// stateTimes sums up what a lane's thread did from one time until another.
func (s *snapshot) stateTimes(l *lane, from, to uint64) (sum stateSums) {
	if from >= to {
		return sum
	}
	segments := s.statesOf(l).segments
	one := stateCells{cells: make([]stateSums, 1)}
	read := func(from, to uint64) {
		if from >= to {
			return
		}
		r := s.readStates(l, from)
		for ; r.more; r.next() {
			if start, end := max(r.cur.start, from), min(r.cur.end, to); start < end {
				one.cells[0].spend(&r.cur, end-start)
			}
			if r.cur.end >= to {
				break
			}
		}
		for _, f := range r.faultsBefore(to) {
			if f.at >= from {
				one.cells[0].count(&f)
			}
		}
	}
	i := sort.Search(len(segments), func(i int) bool { return segments[i].end > from })
	last := from
	for ; i < len(segments) && segments[i].start < to; i++ {
		seg := &segments[i]
		if seg.start >= from && seg.end <= to && len(seg.levels) > 0 {
			read(last, seg.start)
			coarsest := &seg.levels[len(seg.levels)-1]
			for k := range coarsest.cells {
				one.cells[0].add(&coarsest.cells[k])
			}
			last = seg.end
		}
	}
	read(last, to)
	return one.cells[0]
}
