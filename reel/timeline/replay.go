package timeline

import (
	"context"
	"sort"

	"github.com/callreel/callreel/reel"
)

// Replay gives the calls of a lane that overlap a range, with their true times
// in ticks (see reel.Call), inner ones before those that made them, until it
// returns false. The Call is valid during the call only.
func (t *Timeline) Replay(ctx context.Context, lane uint32, from, to uint64, yield func(*reel.Call) bool) error {
	s := t.live.Load()
	if uint64(lane) >= uint64(len(s.lanes)) || from >= to {
		return ctx.Err()
	}
	l := s.lanes[lane]
	r := replay{s: s, l: l, from: s.clock.toTicks(from), to: s.clock.toTicks(to), yield: yield}
	first := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].end >= r.from })
	next := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].start >= r.to })
	if next = max(next, first); next == 0 {
		return ctx.Err()
	}
	for i := first; i < next; i++ {
		if err := ctx.Err(); err != nil || r.stopped {
			return err
		}
		r.segment(i)
	}
	if !r.stopped {
		r.rest(next)
	}
	return ctx.Err()
}

type replay struct {
	s        *snapshot
	l        *lane
	from, to uint64 // ticks from the start
	yield    func(*reel.Call) bool
	call     reel.Call
	stopped  bool
}

// give passes a call on if it overlaps the range.
func (r *replay) give(c *call) {
	if r.stopped || c.start >= r.to || c.end <= r.from && c.start < r.from {
		return
	}
	k := c.key()
	r.call = reel.Call{
		Func: c.fn, Depth: k.depth(), Stack: k.stack(), Inside: c.inside(), Flags: c.flags(),
		Start: c.start + r.s.clock.first, End: c.end + r.s.clock.first,
	}
	r.stopped = !r.yield(&r.call)
}

// segment gives the calls that end in a segment.
func (r *replay) segment(i int) {
	seg := &r.l.segments[i]
	if seg.chunks == 0 {
		r.batch(i)
		return
	}
	w := r.s.takeWorker()
	defer r.s.workers.Put(w)
	w.p.resume(r.l, seg)
	given := 0
	w.p.ended = func(index int32, _ *reel.Call) {
		for ; given < len(w.p.calls); given++ {
			r.give(&w.p.calls[given])
		}
		c := r.l.spans[index].call()
		r.give(&c)
	}
	r.s.pushChunks(r.l, seg, w, nil)
	for ; given < len(w.p.calls); given++ {
		r.give(&w.p.calls[given])
	}
}

// rest gives the calls that are open behind the segments that were read, of which
// next is the first; they began before the range's end, or are left out.
func (r *replay) rest(next int) {
	if next < len(r.l.segments) {
		for _, top := range r.l.segments[next].stacks {
			for k := top.top; k >= 0; k = r.l.spans[k].around {
				c := r.l.spans[k].call()
				r.give(&c)
			}
		}
		return
	}
	for _, k := range r.l.openAtEnd() {
		c := r.l.spans[k].call()
		r.give(&c)
	}
}

// openAtEnd are the spans that no event ended, inner ones before outer ones.
func (l *lane) openAtEnd() []int32 {
	n := len(l.segments) - 1
	first, to := l.spansOf(n)
	open := l.openSpans(&l.segments[n])
	var list []int32
	for k := int32(to) - 1; k >= int32(first); k-- {
		if l.spans[k].flags&reel.Unfinished != 0 {
			list = append(list, k)
		}
	}
	for _, stack := range open {
		for d := len(stack) - 1; d >= 0; d-- {
			if l.spans[stack[d]].flags&reel.Unfinished != 0 {
				list = append(list, stack[d])
			}
		}
	}
	return list
}
