package sched

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"
)

// head is a ring whose next record has this time.
type head struct {
	time uint64
	ring ring
}

type heads []head

func (h heads) Len() int           { return len(h) }
func (h heads) Less(i, j int) bool { return h[i].time < h[j].time }
func (h heads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)        { *h = append(*h, x.(head)) }
func (h *heads) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// drain gives what the rings have, merged by time. Final says that nothing more will be written.
func (w *Watcher) drain(yield func(tid, pid int, e Event), final bool) error {
	if w.source == nil {
		return nil
	}
	w.yield = yield
	defer func() { w.yield = nil }()
	// The clock is read before the rings: what isn't in them then is later.
	if err := w.clock.advance(); err != nil {
		return fmt.Errorf("sched: clock: %w", err)
	}
	limit := w.clock.to.ns
	if late := w.source.late(); !final && limit > late {
		limit -= late // what is in the rings already tells which of the last moments were earlier
	}
	rings := w.source.rings()
	// What was lost after the last bound still matters.
	w.holes = append(w.holes[:0], slices.DeleteFunc(w.holes[min(w.hole, len(w.holes)):], func(h window) bool { return h.to <= w.limit })...)
	for i := range w.holes {
		w.holes[i].count = 0 // they were counted
	}
	w.hole = 0
	bound := limit
	for _, r := range rings {
		r.load(limit)
		w.holes = append(w.holes, r.windows()...)
		bound = min(bound, r.bound(limit))
	}
	if final {
		bound = limit
	}
	bound = max(bound, w.limit)
	w.mergeHoles()
	w.mergeAll(rings, bound)
	for _, r := range rings {
		r.release()
	}
	w.limit, w.bound = bound, max(w.bound, w.clock.ticks(bound))
	w.passHoles(bound)
	w.afterLoss()
	w.settle(final)
	w.forgetGone()
	if ns := w.source.minorsEnded(); ns != 0 && w.stats.MinorsEnded == 0 {
		w.stats.MinorsEnded = w.clock.ticks(ns)
	}
	return nil
}

// mergeAll tells all that happened up to bound.
func (w *Watcher) mergeAll(rings []ring, bound uint64) {
	w.coming = w.clock.ticks(bound)
	w.merge(rings, bound)
	w.letAllGo()
}

// merge tells what happened up to bound, in order of time.
func (w *Watcher) merge(rings []ring, bound uint64) {
	h := heads(w.heads[:0])
	for _, r := range rings {
		if t, ok := r.peek(); ok && t <= bound {
			h = append(h, head{t, r})
		}
	}
	heap.Init(&h)
	var out [2]told
	for len(h) > 0 {
		r := h[0].ring
		// As long as this ring has the earliest, the others needn't be looked at.
		next := ^uint64(0)
		for k := 1; k < min(len(h), 3); k++ {
			next = min(next, h[k].time)
		}
		for {
			for i := range r.take(&out) {
				w.tell(&out[i])
			}
			t, ok := r.peek()
			if !ok || t > bound {
				heap.Pop(&h)
				break
			}
			if t > next {
				h[0].time = t
				heap.Fix(&h, 0)
				break
			}
		}
	}
	w.heads = h
}

// near joins losses: between two of them that are this near, in nanoseconds, nothing is taken for known.
const near = uint64(time.Millisecond)

// mergeHoles puts the holes of all rings in order.
func (w *Watcher) mergeHoles() {
	slices.SortFunc(w.holes, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	n := 0
	for _, h := range w.holes {
		w.stats.Lost += h.count
		if n > 0 && h.from <= w.holes[n-1].to+near {
			w.holes[n-1].to = max(w.holes[n-1].to, h.to)
			continue
		}
		w.holes[n] = h
		n++
	}
	w.holes = w.holes[:n]
}

// passHoles notes the holes that begin before a time: up to where something may be missing.
func (w *Watcher) passHoles(time uint64) {
	for w.hole < len(w.holes) && w.holes[w.hole].from < time {
		h := &w.holes[w.hole]
		w.lossEnd = max(w.lossEnd, w.clock.ticks(min(h.to, time)))
		if h.to > time {
			return
		}
		w.hole++
	}
}

// afterLoss tells all threads of the loss that had no event since.
func (w *Watcher) afterLoss() {
	if w.lossEnd == 0 {
		return
	}
	for _, t := range w.threads {
		w.checkLoss(t, w.bound)
	}
}
