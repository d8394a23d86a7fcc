package export

import (
	"math"
	"strconv"

	"github.com/callreel/callreel/reel"
)

// goroutineRun is a stretch of time that a goroutine was on a thread.
type goroutineRun struct {
	goroutine  uint64
	thread     uint32 // key
	tid        int
	start, end int64 // nanoseconds since the recording started, of the first and the last event
	lane       *lane
}

// merged walks over the threads together, forward in time. Goroutines have lanes
// of their own whatever threads they run on, and so has what ran on a thread's
// own stack, which is the thread's lane.
type merged struct {
	*walk
	open map[uint64]*strand      // by goroutine, those that have open calls
	rest map[uint64]*lane        // lanes of the others that go on
	own  map[uint32]*strand      // by the thread's key
	free []*strand               // without open calls
	drop map[uint32][]reel.Drop  // of each thread, not told yet
	of   map[uint32]reel.Thread  // by key
	runs map[uint32]*threadRuns  // by key
	last map[uint64]goroutineRun // by goroutine: of those that go on, the run that is over
	did  *reel.GoroutineStates   // nil if that isn't wanted, or known
}

// threadRuns is which goroutine is on a thread.
type threadRuns struct {
	lane *lane
	now  goroutineRun // goroutine is 0 for none
}

func (w *walk) merged() {
	m := &merged{walk: w, open: map[uint64]*strand{}, rest: map[uint64]*lane{}, own: map[uint32]*strand{},
		drop: map[uint32][]reel.Drop{}, of: map[uint32]reel.Thread{}, runs: map[uint32]*threadRuns{}, last: map[uint64]goroutineRun{}}
	if w.f.Header().Goroutines && (w.pairStates || w.clocks) && w.weighed() {
		m.did = w.f.GoroutineStates()
	}
	for _, t := range w.f.Threads() {
		m.of[t.Key] = t
	}
	for _, d := range w.f.Drops() {
		m.drop[d.Thread] = append(m.drop[d.Thread], d)
	}
	w.f.ReadGoroutines(func(id uint64, thread uint32, events []reel.Event, lost bool) bool {
		m.events(id, thread, events, lost)
		return !w.failed()
	})
	for _, t := range w.f.Threads() {
		m.dropped(t.Key, math.MaxUint64)
		if r := m.runs[t.Key]; r != nil {
			m.endRun(r)
		}
	}
	for _, id := range sortedKeys(m.open) {
		m.open[id].finish()
	}
	for _, key := range sortedKeys(m.own) {
		m.own[key].finish()
	}
}

// events takes what one goroutine, or with 0 the thread itself, did on one thread.
func (m *merged) events(id uint64, thread uint32, events []reel.Event, lost bool) {
	at := eventTick(events[0], m.f.FirstTick())
	m.dropped(thread, at)
	if lost {
		m.thread(thread).note(at, note{kind: noteDamage})
		m.lost(thread)
	}
	if m.f.Header().Goroutines {
		m.ran(id, thread, events)
	}
	if id == 0 {
		m.thread(thread).from(thread)
		m.push(m.thread(thread), id, thread, events, lost)
		return
	}
	s := m.open[id]
	if s == nil {
		s = m.goroutine(id, m.of[thread].Process)
		m.open[id] = s
	}
	s.from(thread)
	m.push(s, id, thread, events, lost)
	ended := m.f.Ends(events)
	if ended {
		s.pairer.Abandon()
	}
	if s.depth == 0 {
		m.close(id, s, ended)
	}
}

// push has a strand's events paired.
func (m *merged) push(s *strand, id uint64, thread uint32, events []reel.Event, lost bool) {
	if m.did == nil {
		s.pairer.Push(events)
		return
	}
	m.did.Push(&s.pairer, id, thread, events, lost)
}

// lost marks the open calls of whom events may be missing.
func (m *merged) lost(thread uint32) {
	if !m.f.Header().Goroutines {
		m.thread(thread).pairer.Lost()
		return
	}
	for _, s := range m.open {
		s.pairer.Lost()
	}
	for _, s := range m.own {
		s.pairer.Lost()
	}
}

// close takes a strand without open calls from its goroutine.
func (m *merged) close(id uint64, s *strand, ended bool) {
	s.pairer.Finish(0) // as new
	delete(m.open, id)
	if ended {
		if m.did != nil {
			m.did.Forget(id)
		}
		for _, r := range m.runs {
			if r.now.goroutine == id {
				m.endRun(r)
			}
		}
		delete(m.last, id)
	} else if len(s.lanes) > 0 {
		m.rest[id] = s.lanes[0]
	}
	m.free = append(m.free, s)
}

// dropped tells the drops of a thread up to a tick.
func (m *merged) dropped(thread uint32, until uint64) {
	list := m.drop[thread]
	for len(list) > 0 && list[0].Tick <= until {
		m.thread(thread).dropped(list[0])
		list = list[1:]
	}
	m.drop[thread] = list
}

// thread is the strand of a thread's own stack.
func (m *merged) thread(key uint32) *strand {
	s := m.own[key]
	if s == nil {
		s = m.newStrand(m.of[key])
		m.own[key] = s
	}
	return s
}

// goroutine is the strand of a goroutine, which keeps its lane.
func (m *merged) goroutine(id uint64, process int) *strand {
	var s *strand
	if n := len(m.free); n > 0 {
		s, m.free = m.free[n-1], m.free[:n-1]
		s.lanes, s.now, s.on = nil, m.f.FirstTick(), nil
		s.pairer.SetTime(s.now)
	} else {
		s = m.newStrand(reel.Thread{})
	}
	s.thread, s.goroutine, s.name = reel.Thread{Process: process}, id, m.goroutineLane(id)
	if l := m.rest[id]; l != nil {
		s.lanes = append(s.lanes, l)
		delete(m.rest, id)
	}
	return s
}

// ran notes that a goroutine made events on a thread.
func (m *merged) ran(id uint64, thread uint32, events []reel.Event) {
	r := m.runs[thread]
	if r == nil {
		if id == 0 {
			return
		}
		r = &threadRuns{}
		m.runs[thread] = r
	}
	from := m.nanoseconds(eventTick(events[0], m.f.FirstTick()))
	to := max(from, m.nanoseconds(eventTick(events[len(events)-1], m.f.FirstTick())))
	if r.now.goroutine == id && id != 0 {
		r.now.end = max(r.now.end, to)
		return
	}
	m.endRun(r)
	if id == 0 || m.untimed {
		return
	}
	for _, o := range m.runs { // it can be on one thread only
		if o.now.goroutine == id {
			m.endRun(o)
		}
	}
	r.now = goroutineRun{goroutine: id, thread: thread, tid: m.of[thread].TID, start: from, end: to}
}

// endRun tells of the goroutine's run on the thread, which is over.
func (m *merged) endRun(r *threadRuns) {
	if r.now.goroutine == 0 {
		return
	}
	if r.lane == nil {
		r.lane = m.runLane(m.of[r.now.thread])
	}
	run := r.now
	r.now = goroutineRun{}
	run.lane = r.lane
	run.start = max(run.start, r.lane.last)
	run.end = max(run.end, run.start+1) // one with a single event has a width, too
	r.lane.last = run.end
	var back *goroutineRun
	if was, known := m.last[run.goroutine]; known {
		back = &was
	}
	m.sink.run(r.lane, run, back)
	m.last[run.goroutine] = run
}

func (m *merged) runLane(t reel.Thread) *lane {
	name := t.Name
	if name == "" {
		name = "thread"
	}
	s := strand{walk: m.walk, thread: t}
	l := &lane{pid: m.pid(t), tid: s.extraLane(), thread: t, runs: true, order: int(t.Key)<<9 + 1<<9 - 1, last: 0}
	l.name, l.main = name+" ("+strconv.Itoa(t.TID)+"): goroutines", l
	m.sink.lane(l)
	return l
}
