package timeline

import (
	"sort"

	"github.com/callreel/callreel/reel"
)

// goroutineVisit replays the lanes of a Go program, batch by batch.
type goroutineVisit struct {
	*visit
	wanted  map[uint32]bool // nil for all
	visits  map[uint32]*laneVisit
	workers map[uint32]*worker // of the lanes that are in the batch
	detach  []func()
}

// goroutines replays lanes of goroutines.
func (x *visit) goroutines(lanes []uint32) {
	g := &goroutineVisit{visit: x, visits: map[uint32]*laneVisit{}, workers: map[uint32]*worker{}}
	if lanes != nil {
		g.wanted = map[uint32]bool{}
		for _, lane := range lanes {
			g.wanted[lane] = true
		}
	}
	first, next := g.batches()
	for i := first; i < next && !x.over(); i++ {
		g.batch(i)
	}
	for _, l := range x.s.lanes {
		if g.wants(l) && !x.over() {
			v := g.visits[l.ID]
			x.rest(l, l.firstIn(max(first, next)), v != nil && v.begun)
		}
	}
}

func (g *goroutineVisit) wants(l *lane) bool { return g.wanted == nil || g.wanted[l.ID] }

// firstIn is the lane's first segment in a batch or behind it.
func (l *lane) firstIn(batch int) int {
	return sort.Search(len(l.segments), func(k int) bool { return int(l.segments[k].chunk) >= batch })
}

// batches are those in which the lanes have events in the range, next exclusive;
// if there are none, next is no more than first.
func (g *goroutineVisit) batches() (first, next int) {
	first = len(g.s.batches)
	for _, l := range g.s.lanes {
		if !g.wants(l) {
			continue
		}
		if k := sort.Search(len(l.segments), func(k int) bool { return l.segments[k].end >= g.from }); k < len(l.segments) {
			first = min(first, int(l.segments[k].chunk))
		}
		if k := sort.Search(len(l.segments), func(k int) bool { return l.segments[k].start >= g.to }); k > 0 {
			next = max(next, int(l.segments[k-1].chunk)+1)
		}
	}
	return first, next
}

// batch replays a batch.
func (g *goroutineVisit) batch(i int) {
	batch := &g.s.batches[i]
	events := 0
	g.s.f.Goroutines(batch.marks).Read(func(id uint64, thread uint32, list []reel.Event, lost bool) bool {
		if lost { // those of whom events are missing aren't known
			for _, w := range g.workers {
				w.p.pairer.Lost()
			}
		}
		events += len(list)
		if l := g.s.laneOf[keyOfRun(id, thread)]; l != nil && g.wants(l) {
			g.take(l, i, list)
		}
		return events < batch.events && !g.over()
	})
	for _, detach := range g.detach {
		detach()
	}
	g.detach = g.detach[:0]
	for lane, w := range g.workers {
		g.s.workers.Put(w)
		delete(g.workers, lane)
	}
}

// take takes the next events of a lane in a batch.
func (g *goroutineVisit) take(l *lane, batch int, events []reel.Event) {
	v, w := g.visits[l.ID], g.workers[l.ID]
	if v == nil {
		v = &laneVisit{visit: g.visit, lane: l}
		g.visits[l.ID] = v
	}
	if w == nil {
		k := l.firstIn(batch)
		if k == len(l.segments) || int(l.segments[k].chunk) != batch {
			return // the reel has grown since
		}
		seg := &l.segments[k]
		w = g.s.takeWorker()
		w.p.resume(l, seg)
		g.workers[l.ID] = w
		g.detach = append(g.detach, v.attach(w))
	}
	v.take(events, g.untilTime(w))
	w.p.ranOut(g.s.f.Ends(events))
}
