package why

import "github.com/callreel/callreel/reel"

// goroutineThreads follows which goroutine is on which thread, while the events of all of them come by in order. Where the functions of Go's
// runtime are recorded that schedule, it is known when one has left, and when it went on: what runs on the thread's own stack in between may
// also be the runtime at work for the goroutine, which then is still there.
type goroutineThreads struct {
	by     map[uint32]*goroutineThread // keys of threads
	where  map[uint64]*goroutineThread // goroutines
	gone   map[uint64]move             // goroutines that have left
	leaves map[uint32]reel.RunState    // functions on a thread's own stack by which a goroutine leaves, and what it does then
	known  bool
}

// goroutineThread is a thread on which goroutines run.
type goroutineThread struct {
	last  runKey // whose events came last
	owner uint64 // the goroutine that is on it, 0 if none is known to be
	own   uint64 // the last event on the thread's own stack, in ticks
}

// move is how a goroutine came to go on.
type move struct {
	still bool          // it was there all the time
	left  uint64        // when it had left its thread, in ticks; 0 if that isn't known
	came  uint64        // when it went on
	to    reel.RunState // what it did in between
}

func newGoroutineThreads(f *reel.File) *goroutineThreads {
	g := &goroutineThreads{by: map[uint32]*goroutineThread{}, where: map[uint64]*goroutineThread{}, gone: map[uint64]move{}, leaves: map[uint32]reel.RunState{}}
	f.Functions(func(id uint32, fn reel.Function) bool {
		if fn.Tier == reel.TierNone {
			return true
		}
		switch fn.Name {
		case "runtime.park_m":
			g.leaves[id] = reel.StateBlocked
		case "runtime.goschedImpl", "runtime.gosched_m", "runtime.gopreempt_m", "runtime.goyield_m", "runtime.goschedguarded_m", "runtime.exitsyscall0", "runtime.exitsyscallNoP":
			g.leaves[id] = reel.StateReady
		case "runtime.schedule":
			g.leaves[id], g.known = reel.StateUnknown, true
		case "runtime.preemptPark", "runtime.goexit0":
			g.leaves[id] = reel.StateUnknown
		}
		return true
	})
	return g
}

// take takes the next events, and says of a goroutine how it came to make them.
func (g *goroutineThreads) take(k runKey, thread uint32, events []reel.Event, lost bool) (m move) {
	t := g.by[thread]
	if t == nil {
		t = &goroutineThread{}
		g.by[thread] = t
	}
	if lost {
		*t = goroutineThread{}
	}
	before := t.last
	t.last = k
	at := events[0].Time
	if k.goroutine == 0 {
		t.own = events[len(events)-1].Time
		if t.owner != 0 {
			g.scan(t, events)
		}
		return move{}
	}
	m = g.gone[k.goroutine]
	delete(g.gone, k.goroutine)
	m.came = at
	m.still = before == k || g.known && t.owner == k.goroutine
	if g.known && m.left > 0 && before.goroutine == 0 && t.own > m.left {
		m.came = t.own // the scheduler's last
	}
	if o := g.where[k.goroutine]; o != nil && o != t && o.owner == k.goroutine {
		o.owner = 0
	}
	t.owner, g.where[k.goroutine] = k.goroutine, t
	return m
}

// scan looks for functions on the thread's own stack by which its goroutine leaves.
func (g *goroutineThreads) scan(t *goroutineThread, events []reel.Event) {
	for i := range events {
		e := &events[i]
		if e.IsExit() {
			continue
		}
		if to, ok := g.leaves[e.ID()]; ok {
			g.gone[t.owner] = move{left: e.Time, to: to}
			delete(g.where, t.owner)
			t.owner = 0
			return
		}
	}
}
