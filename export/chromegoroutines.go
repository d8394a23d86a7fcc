package export

import (
	"math"
	"slices"
	"strconv"

	"github.com/callreel/callreel/reel"
)

// chromeGoroutines writes the events of a reel whose threads ran goroutines: each goroutine has a lane of its own, and so has what ran
// on a thread's own stack, which is the thread's lane.
type chromeGoroutines struct {
	*chrome
	open map[uint64]*chromeThread // by goroutine, those that have open calls
	rest map[uint64]chromeLane    // lanes of the others
	own  map[uint32]*chromeThread // by the thread's key
	free []*chromeThread          // without open calls
	drop map[uint32][]reel.Drop   // of each thread, not written yet
	of   map[uint32]reel.Thread   // by key
}

// goroutines writes all events.
func (c *chrome) goroutines() {
	g := &chromeGoroutines{chrome: c, open: map[uint64]*chromeThread{}, rest: map[uint64]chromeLane{}, own: map[uint32]*chromeThread{},
		drop: map[uint32][]reel.Drop{}, of: map[uint32]reel.Thread{}}
	for _, t := range c.f.Threads() {
		g.of[t.Key] = t
	}
	for _, d := range c.f.Drops() {
		g.drop[d.Thread] = append(g.drop[d.Thread], d)
	}
	c.f.ReadGoroutines(func(id uint64, thread uint32, events []reel.Event, lost bool) bool {
		g.run(id, thread, events, lost)
		if c.err == nil {
			c.err = c.ctx.Err()
		}
		return c.err == nil
	})
	for _, t := range c.f.Threads() {
		g.dropped(t.Key, math.MaxUint64)
	}
	for _, id := range sortedKeys(g.open) {
		g.open[id].finish()
	}
	for _, key := range sortedKeys(g.own) {
		g.own[key].finish()
	}
}

// run writes what one goroutine did on one thread.
func (g *chromeGoroutines) run(id uint64, thread uint32, events []reel.Event, lost bool) {
	at := eventTick(events[0], g.f.FirstTick())
	g.dropped(thread, at)
	if lost {
		g.thread(thread).instant("events lost: the file is damaged", at, "")
		for _, t := range g.open {
			t.pairer.Lost()
		}
		for _, t := range g.own {
			t.pairer.Lost()
		}
	}
	if id == 0 {
		g.thread(thread).pairer.Push(events)
		return
	}
	t := g.open[id]
	if t == nil {
		t = g.goroutine(id, g.of[thread].Process)
		g.open[id] = t
	}
	t.pairer.Push(events)
	if g.f.Ends(events) {
		t.pairer.Left()
	}
	if t.depth == 0 {
		t.pairer.Finish(0) // as new
		delete(g.open, id)
		if len(t.lanes) > 0 {
			g.rest[id] = t.lanes[0]
		}
		g.free = append(g.free, t)
	}
}

// dropped writes the drops of a thread up to a tick.
func (g *chromeGoroutines) dropped(thread uint32, until uint64) {
	list := g.drop[thread]
	for len(list) > 0 && list[0].Tick <= until {
		g.thread(thread).dropped(list[0])
		list = list[1:]
	}
	g.drop[thread] = list
}

// thread is what writes the lane of a thread.
func (g *chromeGoroutines) thread(key uint32) *chromeThread {
	t := g.own[key]
	if t == nil {
		t = g.newThread(g.of[key])
		g.own[key] = t
	}
	return t
}

// goroutine is what writes the lane of a goroutine, which keeps its lane.
func (g *chromeGoroutines) goroutine(id uint64, process int) *chromeThread {
	var t *chromeThread
	if n := len(g.free); n > 0 {
		t, g.free = g.free[n-1], g.free[:n-1]
		t.lanes, t.now = t.lanes[:0], g.f.FirstTick()
		t.pairer.SetTime(t.now)
	} else {
		t = g.newThread(reel.Thread{})
	}
	lane, known := g.rest[id]
	tid := lane.tid
	if !known {
		tid = g.extraLane()
	}
	t.thread, t.name = reel.Thread{TID: tid, Process: process}, "goroutine "+strconv.FormatUint(id, 10)
	if known {
		t.lanes = append(t.lanes, lane)
	}
	return t
}

func sortedKeys[K uint32 | uint64, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
