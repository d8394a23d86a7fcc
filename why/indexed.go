package why

import (
	"cmp"
	"context"
	"slices"

	"github.com/callreel/callreel/reel"
)

const (
	// byIndex is from how many events on calls are found by the timeline's index: below all are read as quickly.
	byIndex = 1 << 23
	// sampledSegments is in how many pieces of the reel ordinary calls are looked for.
	sampledSegments = 48
	// besides is how many of the longest calls more than are explained are found whatever pieces they are in.
	besides = 8
)

// collectIndexed is collect by the index of a large reel; nil if it has none that can be used.
func (x *explainer) collectIndexed(ctx context.Context, fns []uint32, over uint64) *collector {
	const most = 8 // functions
	if x.f.Events() < byIndex || x.f.Header().Clock.Mode != reel.ClockFull || len(fns) > most || x.timeline() == nil {
		return nil
	}
	lanes := x.tl.Lanes()
	longest := besides + max(1, x.o.Slowest)
	if over > 0 && x.o.Slowest == 0 {
		longest = MaxCalls
	}
	c := newCollector(fns, over, x.o.Call)
	for _, fn := range fns {
		p := c.found[fn]
		var sampled, all []indexedCall
		total, err := x.tl.SampleFunction(ctx, fn, sampledSegments, longest, x.o.workers(), func(lane uint32, v *reel.Call, isSampled bool) {
			r := indexedCall{ref{start: v.Start, end: v.End, fn: fn, thread: lanes[lane].Thread, flags: v.Flags}, v.Stack, v.Depth}
			all = append(all, r)
			if isSampled {
				sampled = append(sampled, r)
			}
		})
		if err != nil {
			return nil
		}
		kept := outermost(sampled)
		for _, r := range kept {
			if r.whole() {
				p.all.add(r)
			}
		}
		// Those within others of the function don't count.
		p.all.every = max(1, uint64(float64(total)/float64(max(1, len(sampled)))*float64(len(kept))/float64(max(1, len(p.all.list)))))
		for _, r := range outermost(all) {
			p.top.add(r)
		}
	}
	if id := x.o.Call; id != nil {
		p := c.found[id.Function]
		for _, l := range lanes {
			if l.Thread != id.Thread {
				continue
			}
			from := x.tl.NS(id.Start)
			_ = x.tl.VisitFunction(ctx, []uint32{l.ID}, id.Function, from, from+1, func(_ uint32, v *reel.Call) bool {
				if v.Start == id.Start {
					p.asked = &ref{start: v.Start, end: v.End, fn: v.Func, thread: l.Thread, flags: v.Flags}
				}
				return p.asked == nil
			})
		}
	}
	return c
}

// indexedCall is a call and where it is on its thread's stacks.
type indexedCall struct {
	ref
	stack, depth int
}

// outermost leaves out calls within others of the list, and those that are in it twice.
func outermost(list []indexedCall) (kept []ref) {
	slices.SortFunc(list, func(a, b indexedCall) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.stack, b.stack), cmp.Compare(a.start, b.start), cmp.Compare(a.depth, b.depth))
	})
	var last *indexedCall
	for i := range list {
		r := &list[i]
		if last != nil && last.thread == r.thread && last.stack == r.stack && r.start < last.end && r.depth >= last.depth || last != nil && last.ref == r.ref {
			continue
		}
		kept = append(kept, r.ref)
		last = r
	}
	return kept
}
