package timeline

import (
	"context"
	"math/bits"
	"slices"
	"sync"

	"github.com/callreel/callreel/reel"
)

// SampleFunction gives calls of a function without decoding all segments: those that begin in so many segments, evenly over all that have
// any, and, whatever segments they are in, at least the so many longest of all. leave is called by one goroutine at a time, in no
// particular order, maybe twice for a call, with sampled for those of the evenly chosen segments. Calls have no SP. It returns how many calls there
// are. The reel must not be one of goroutines.
func (t *Timeline) SampleFunction(ctx context.Context, fn uint32, segments, longest, workers int, leave func(lane uint32, c *reel.Call, sampled bool)) (total uint64, err error) {
	x := functionSample{s: t.live.Load(), fn: fn, longest: max(1, longest)}
	for _, l := range x.s.lanes {
		total += x.lane(l)
	}
	least := x.least()
	var todo []sampleSegment
	for i := range x.list {
		if seg := &x.list[i]; x.mayHold(seg, least) {
			seg.wanted = true
		}
	}
	for k := range min(segments, len(x.list)) {
		seg := &x.list[(2*k+1)*len(x.list)/(2*min(segments, len(x.list)))]
		seg.wanted, seg.sampled = true, true
	}
	for _, seg := range x.list {
		if seg.wanted {
			todo = append(todo, seg)
		}
	}
	var mu sync.Mutex
	give := func(lane uint32, sampled bool) func(lane uint32, c *reel.Call) bool {
		return func(_ uint32, c *reel.Call) bool {
			leave(lane, c, sampled)
			return true
		}
	}
	next := make(chan sampleSegment)
	var wg sync.WaitGroup
	for range max(1, min(workers, len(todo))) {
		wg.Go(func() {
			for seg := range next {
				w := x.s.takeWorker()
				w.p.resume(seg.l, &seg.l.segments[seg.at])
				x.s.pushChunks(seg.l, &seg.l.segments[seg.at], w, nil)
				mu.Lock()
				v := visit{ctx: ctx, s: x.s, to: ^uint64(0), v: Visitor{Leave: give(seg.l.ID, seg.sampled)}}
				v.ofCalls(seg.l, w.p.calls, fn)
				mu.Unlock()
				x.s.workers.Put(w)
			}
		})
	}
	for _, seg := range todo {
		if ctx.Err() == nil {
			next <- seg
		}
	}
	close(next)
	wg.Wait()
	for _, sp := range x.spans {
		v := visit{ctx: ctx, s: x.s, to: ^uint64(0), v: Visitor{Leave: give(sp.l.ID, true)}}
		v.ofSpan(sp.l, &sp.l.spans[sp.at], fn)
	}
	return total, ctx.Err()
}

// sampleSegment is a segment in which calls of the function begin.
type sampleSegment struct {
	l       *lane
	at      int
	bound   uint64 // no call takes longer that isn't among the durations of bars, in ticks
	longest uint64 // bar of a call of its own
	wanted  bool
	sampled bool
}

// sampleSpan is a call of the function that is open where a segment ends.
type sampleSpan struct {
	l  *lane
	at int
}

// functionSample finds the segments to be decoded.
type functionSample struct {
	s       *snapshot
	fn      uint32
	longest int
	list    []sampleSegment
	spans   []sampleSpan
	lengths []uint64 // of calls that are known without decoding
	coder   levelCoder
}

// lane looks at a lane's segments, and counts its calls.
func (x *functionSample) lane(l *lane) (calls uint64) {
	for i := range l.spans {
		if sp := &l.spans[i]; sp.fn == x.fn {
			x.spans = append(x.spans, sampleSpan{l, i})
			x.lengths = append(x.lengths, sp.end-sp.start)
		}
	}
	for i := range l.segments {
		n := uint64(0)
		err := eachFunction(l.segments[i].summary, func(id, count uint32) bool {
			if id == x.fn {
				n = uint64(count)
			}
			return id < x.fn
		})
		if n == 0 && err == nil {
			continue
		}
		calls += n
		seg := sampleSegment{l: l, at: i}
		x.look(&seg, maxGrain)
		x.list = append(x.list, seg)
	}
	return calls
}

// look reads a level of a segment's summary: the coarsest up to a grain.
func (x *functionSample) look(seg *sampleSegment, most uint) {
	s := &seg.l.segments[seg.at]
	seg.bound = s.end - s.start
	_ = reel.CatchFaults(func() error { // without a level it is decoded
		summary := slices.Clone(s.summary)
		var pick summaryPart
		for p, ok := nextPart(&summary); ok; p, ok = nextPart(&summary) {
			if p.tag > pick.tag && uint(p.tag) <= most+1 {
				pick = p
			}
		}
		body := pick.checked()
		if pick.tag == 0 || body == nil {
			return nil
		}
		seg.bound = min(seg.bound, 1<<(pick.tag-1))
		r := x.coder.reader(body, s.start, int(s.events))
		for {
			_, bars, ok := r.next()
			if !ok {
				return nil
			}
			for i := range bars {
				if b := &bars[i]; b.fn == x.fn && b.calls == 1 {
					x.lengths = append(x.lengths, b.end-b.start)
					seg.longest = max(seg.longest, b.end-b.start)
				}
			}
		}
	})
}

// least is a duration that as many calls as are wanted have at least.
func (x *functionSample) least() uint64 {
	if len(x.lengths) < x.longest {
		return 0
	}
	slices.Sort(x.lengths)
	return x.lengths[len(x.lengths)-x.longest]
}

// mayHold says whether a segment may hold one of the longest calls.
func (x *functionSample) mayHold(seg *sampleSegment, least uint64) bool {
	if seg.bound > least && least > 0 { // a finer level may tell
		x.look(seg, uint(max(0, bits.Len64(least)-1)))
	}
	return seg.bound > least || seg.longest >= least
}
