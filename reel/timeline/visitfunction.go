package timeline

import (
	"context"
	"math"
	"sort"

	"github.com/callreel/callreel/reel"
)

// VisitFunction gives the calls of a function on lanes, nil being all, that are
// open between from and to as in Visit, in no particular order, until leave
// returns false. Segments in which none of its calls begins aren't decoded.
func (t *Timeline) VisitFunction(ctx context.Context, lanes []uint32, fn uint32, from, to uint64, leave func(lane uint32, c *reel.Call) bool) error {
	of := Visitor{
		Enter: func(uint32, *reel.Call) {},
		Leave: func(lane uint32, c *reel.Call) bool { return c.Func != fn || leave(lane, c) },
	}
	s := t.live.Load()
	if s.f.Header().Goroutines { // a batch is decoded for all lanes at once
		return t.Visit(ctx, lanes, from, to, of)
	}
	x := &visit{ctx: ctx, s: s, from: s.clock.toTicks(from), to: math.MaxUint64, v: of}
	if to != math.MaxUint64 {
		x.to = s.clock.toTicks(to)
	}
	if lanes == nil {
		for i := range s.lanes {
			lanes = append(lanes, uint32(i))
		}
	}
	for _, lane := range lanes {
		if uint64(lane) < uint64(len(s.lanes)) {
			x.function(s.lanes[lane], fn)
		}
	}
	return ctx.Err()
}

// function gives the calls of a function on a lane.
func (x *visit) function(l *lane, fn uint32) {
	first := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].end >= x.from })
	for _, k := range l.openBefore(first) {
		x.ofSpan(l, &l.spans[k], fn)
	}
	// Where entries carry no time a call may begin just before its segment.
	for i := first; i < len(l.segments) && (i == first || l.segments[i-1].start < x.to) && !x.over(); i++ {
		seg := &l.segments[i]
		if !seg.calls(fn) {
			continue
		}
		from, to := l.spansOf(i)
		for k := from; k < to; k++ {
			x.ofSpan(l, &l.spans[k], fn)
		}
		if d, _ := x.s.cache.peek(seg.callsKey()).(*decoded); d != nil {
			x.ofCalls(l, d.calls, fn)
			continue
		}
		w := x.s.takeWorker()
		w.p.resume(l, seg)
		x.s.pushChunks(l, seg, w, nil)
		x.ofCalls(l, w.p.calls, fn)
		x.s.workers.Put(w)
	}
}

func (x *visit) ofSpan(l *lane, sp *span, fn uint32) {
	if sp.fn == fn && x.has(sp) && !x.stopped {
		c := x.spanCall(sp)
		x.leave(l.ID, &c)
	}
}

func (x *visit) ofCalls(l *lane, calls []call, fn uint32) {
	first := x.s.clock.first
	for i := range calls {
		c := &calls[i]
		if c.fn != fn || c.start >= x.to || c.end <= x.from && c.start < x.from || x.stopped {
			continue
		}
		k := c.key()
		x.leave(l.ID, &reel.Call{Func: c.fn, Depth: k.depth(), Stack: k.stack(), Start: c.start + first, End: c.end + first, Inside: c.inside(), Flags: c.flags()})
	}
}

// calls says whether calls of a function begin in the segment.
func (seg *segment) calls(fn uint32) bool {
	found := false
	err := eachFunction(seg.summary, func(id, _ uint32) bool {
		found = id == fn
		return id < fn
	})
	return found || err != nil
}
