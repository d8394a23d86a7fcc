package reel

import (
	"container/heap"
	"math"
)

// liveGoroutines sorts the events of a Go program's threads by goroutine, as [File.ReadGoroutines] does with a reel's: in the order in
// which runs of goroutines began, whatever the threads. So events wait until all of before a tick have come.
type liveGoroutines struct {
	tally *LiveTally
	lanes map[uint64]*liveLane // of goroutines with open calls
	free  []*liveLane
	heads liveHeads
}

const (
	// maxLiveGoroutines is how many goroutines may have open calls; the events of others are ignored.
	maxLiveGoroutines = 1 << 18
	// maxLiveQueue is how many events of a thread may wait. There are more only if its times are wrong.
	maxLiveQueue = 1 << 20
)

// liveQueue is what waits of a thread.
type liveQueue struct {
	events    []Event
	from      int // events before that are done
	goroutine uint64
	start     uint64 // when the next run begins
	most      int    // that have waited at once since the stretch began
}

func newLiveGoroutines(t *LiveTally) *liveGoroutines {
	return &liveGoroutines{tally: t, lanes: map[uint64]*liveLane{}}
}

// queue lets events wait.
func (g *liveGoroutines) queue(l *LiveThread, events []Event) {
	q := &l.queue
	if len(q.events) == 0 && len(events) > 0 {
		q.start = events[0].Time
	}
	q.events = append(q.events, events...)
	if len(q.events) > maxLiveQueue {
		g.drain(l)
	}
}

// merge hands on what is of before limit.
func (g *liveGoroutines) merge(limit uint64) {
	g.heads = g.heads[:0]
	for _, l := range g.tally.threads {
		if l.queue.from < len(l.queue.events) && l.queue.start <= limit {
			g.heads = append(g.heads, l)
		}
	}
	heap.Init(&g.heads)
	for len(g.heads) > 0 {
		l := g.heads[0]
		if g.run(l, min(limit, g.heads.second())) && l.queue.start <= limit {
			heap.Fix(&g.heads, 0)
		} else {
			heap.Pop(&g.heads)
		}
	}
	for _, l := range g.tally.threads {
		l.queue.trim()
	}
}

// drain hands on all of a thread, wherever the others are.
func (g *liveGoroutines) drain(l *LiveThread) {
	for g.run(l, math.MaxUint64) {
	}
	l.queue.trim()
}

// trim drops what is done.
func (q *liveQueue) trim() {
	q.most = max(q.most, len(q.events))
	n := copy(q.events, q.events[q.from:])
	q.events, q.from = q.events[:n], 0
}

// shrink gives memory back that wasn't needed in the last stretch.
func (q *liveQueue) shrink() {
	if cap(q.events) > keptCalls && cap(q.events) > 4*q.most {
		q.events = append(make([]Event, 0, 2*q.most), q.events...)
	}
	q.most = 0
}

// run hands on the events up to the next that names a goroutine, but none that is later than limit. It says whether there are more.
func (g *liveGoroutines) run(l *LiveThread, limit uint64) bool {
	q := &l.queue
	if rest := q.events[q.from:]; len(rest) > 0 && rest[0].Word&switchMask != SwitchWord && rest[0].Time <= limit {
		q.from += g.push(l, rest, limit)
	}
	if q.from == len(q.events) {
		return false
	}
	next := &q.events[q.from]
	q.start = next.Time
	if id, named := next.Goroutine(); named {
		q.goroutine = id
		q.from++
	}
	return true
}

// push gives events to whoever made them, and returns how many those are.
func (g *liveGoroutines) push(l *LiveThread, events []Event, limit uint64) (taken int) {
	id, lane := l.queue.goroutine, l.lane()
	if lane == nil {
		if len(g.lanes) >= maxLiveGoroutines {
			g.tally.ignored++
			return 1
		}
		lane = g.lane()
		g.lanes[id] = lane
	}
	taken, entries := lane.push(events, limit)
	l.calls += entries
	if id == 0 || taken == 0 {
		return taken
	}
	if last := &events[taken-1]; last.Word == g.tally.goexit.Load()<<1 && last.Word != 0 {
		g.tally.open -= lane.pairer.open
		lane.pairer.Abandon()
	}
	if lane.pairer.open == 0 {
		lane.finish(0)
		delete(g.lanes, id)
		g.free = append(g.free, lane)
	}
	return taken
}

// lane returns one without open calls.
func (g *liveGoroutines) lane() *liveLane {
	if n := len(g.free); n > 0 {
		lane := g.free[n-1]
		g.free = g.free[:n-1]
		return lane
	}
	lane := new(liveLane)
	lane.begin(g.tally)
	return lane
}

func (g *liveGoroutines) settle(tick uint64) {
	for _, lane := range g.lanes {
		lane.settle(tick)
	}
	for _, l := range g.tally.threads {
		l.queue.shrink()
	}
}

// liveHeads has the thread first whose next run began first.
type liveHeads []*LiveThread

// second is when the next run of the other threads begins.
func (h liveHeads) second() uint64 {
	at := uint64(math.MaxUint64)
	for i := 1; i < len(h) && i < 3; i++ {
		at = min(at, h[i].queue.start)
	}
	return at
}

func (h liveHeads) Len() int      { return len(h) }
func (h liveHeads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *liveHeads) Push(x any)   { *h = append(*h, x.(*LiveThread)) }
func (h liveHeads) Less(i, j int) bool {
	a, b := h[i], h[j]
	return a.queue.start < b.queue.start || a.queue.start == b.queue.start && a.Key < b.Key
}

func (h *liveHeads) Pop() any {
	old := *h
	l := old[len(old)-1]
	*h = old[:len(old)-1]
	return l
}
