package timeline

import (
	"context"
	"slices"

	"github.com/callreel/callreel/reel"
)

// resumePoint is what indexing the last segment of a growing reel again needs.
type resumePoint struct {
	state  reel.PairerState
	calls  uint64
	gaps   int
	nextID uint32 // number of the segment's first chunk
	taken  uint64 // events before
}

// interval is a call at depth 0, for the overview.
type interval struct{ start, end uint64 }

// laneBuilder indexes one lane.
type laneBuilder struct {
	b       *builder
	l       *lane
	chunks  []reel.Chunk
	drops   []reel.Drop
	endTick uint64

	buf  []reel.Event // that one lane after the other is decoded into
	z    *summarizer
	p    *pairing
	done *columns
	// undone is room for what done was before.
	undone *columns

	seg     segment
	bytes   int    // of its chunks
	taken   uint64 // events before the next
	drop    int    // next of drops
	counted bool   // events' numbers are what Drop.After counts
	calls   uint64 // before the Pairer began to count
	last    bool   // the segment is the lane's last and may still grow

	lastTick uint64 // of its last event, of goroutines
	inBatch  bool

	lost     uint64 // events of damaged chunks, just before the next event
	lostFrom uint64 // tick
}

// build indexes the chunks of a thread's lane, from the last segment on if there
// are some. If the thread's stacks turn out to be neighbours, it is done again
// with their tops known from the beginning.
func (lb *laneBuilder) build(ctx context.Context, ahead bool) error {
	l := lb.l
	known := lb.b.s.f.StackTops(l.Thread)
	if known == nil && l.tops != nil {
		l.resume = nil // there may be more of them now
	}
	l.tops = known
	again := *lb
	lb.undone.copy(lb.done)
	if err := lb.pass(ctx, ahead); err != nil || l.tops != nil {
		return err
	}
	if l.tops = lb.p.pairer.Tops(); l.tops == nil {
		return nil
	}
	lb.done.copy(lb.undone)
	l.resume = nil
	return again.pass(ctx, ahead)
}

// pass indexes them once.
func (lb *laneBuilder) pass(ctx context.Context, ahead bool) error {
	first, next := lb.restart()
	ends := cutChunks(lb.chunks, first, lb.b.opt.segment)
	r := chunkReader{lb.b.s.f, lb.chunks[first:], lb.buf}
	lb.counted = true
	err := r.each(ctx, next, ahead, func(i int, d block) {
		i += first
		if d.first {
			if lb.seg.chunks == 0 {
				lb.last = len(ends) == 1 && lb.b.growing
				if lb.last {
					lb.l.resume = &resumePoint{lb.p.pairer.State(nil), lb.calls + lb.p.pairer.Calls, len(lb.l.gaps), next, lb.taken}
				}
				lb.seg.chunk = uint32(i)
				lb.summarize(lb.chunks[i:ends[0]])
			}
			lb.seg.chunks++
			lb.bytes += lb.chunks[i].Bytes
			next = lb.chunks[i].Seq + 1
		}
		lb.take(d)
		if !d.last {
			return
		}
		lb.b.count(lb.chunks[i].Events)
		if i+1 == ends[0] {
			ends = ends[1:]
			lb.endSegment()
		}
	})
	if err != nil {
		return err
	}
	lb.finish()
	return nil
}

// restart prepares for the first segment that is to be indexed and returns the
// index and the number of its first chunk.
func (lb *laneBuilder) restart() (first int, next uint32) {
	l := lb.l
	l.tail = nil
	var st reel.PairerState
	var open [][]int32
	st.Now = lb.b.s.f.FirstTick()
	if lb.b.s.clock.untimed {
		st.Now = 0
	}
	if n := len(l.segments); n > 0 && l.resume != nil && int(l.segments[n-1].chunk) <= len(lb.chunks) {
		seg := l.segments[n-1]
		l.segments = append([]segment(nil), l.segments[:n-1]...)
		l.spans = append([]span(nil), l.spans[:seg.firstSpan]...)
		l.gaps = append([]gap(nil), l.gaps[:l.resume.gaps]...)
		l.rows = append([]int32(nil), l.rows...)
		st, open = l.resume.state, l.openSpans(&seg)
		first, next = int(seg.chunk), l.resume.nextID
		lb.calls, lb.taken = l.resume.calls, l.resume.taken
	} else {
		*l = lane{Lane: l.Lane, chunks: l.chunks, drops: l.drops, weight: l.weight, tops: l.tops}
	}
	for lb.drop < len(lb.drops) && lb.drops[lb.drop].After < lb.taken {
		lb.drop++
	}
	lb.p.ended = lb.spanEnded
	lb.p.begin(st, open, st.Now)
	if l.tops == nil {
		lb.p.pairer.LearnTops()
	} else {
		lb.p.pairer.SetTops(l.tops)
	}
	lb.beginSegment(st)
	return first, next
}

// cutChunks cuts chunks from first on into segments and returns where each ends.
func cutChunks(chunks []reel.Chunk, first, most int) (ends []int) {
	events := 0
	for i := first; i < len(chunks); i++ {
		n := min(chunks[i].Events, chunks[i].Bytes)
		if i > first && events+n > most {
			ends = append(ends, i)
			events = 0
		}
		events += n
	}
	return append(ends, len(chunks))
}

// beginSegment starts a segment in the state of the Pairer.
func (lb *laneBuilder) beginSegment(st reel.PairerState) {
	seg := segment{
		id: lb.b.ids.Add(1), firstSpan: uint32(len(lb.l.spans)),
		current: uint16(st.Current), floor: st.Floor, stamp: st.Stamp, now: st.Now,
	}
	seg.start = lb.b.s.clock.rel(st.Now)
	seg.end = seg.start
	if len(st.Stacks) > 0 {
		seg.stacks = make([]stackTop, len(st.Stacks))
	}
	for i := range st.Stacks {
		top := int32(-1)
		if i < len(lb.p.open) && len(lb.p.open[i]) > 0 {
			top = lb.p.open[i][len(lb.p.open[i])-1]
		}
		seg.stacks[i] = stackTop{st.Stacks[i].Top, st.Stacks[i].Switched, st.Stacks[i].Since, top}
	}
	lb.seg = seg
}

// summarize prepares for the summary of the next segment, which has some chunks.
func (lb *laneBuilder) summarize(chunks []reel.Chunk) {
	c := &lb.b.s.clock
	start, end := c.rel(lb.p.last), uint64(0)
	if c.untimed {
		end = start + eventsOf(chunks)
	} else {
		end = max(start, c.rel(chunks[len(chunks)-1].Last))
		if t := chunks[0].First; t != 0 {
			start = max(start, c.rel(t))
		}
	}
	lb.z.begin(max(lb.b.density.finest(start+(end-start)/2), grainOfPart(end-start, fineShift)))
	lb.p.into = lb.z
}

// take takes some events of a chunk.
func (lb *laneBuilder) take(d block) {
	if d.gone {
		lb.counted = false
		lb.p.pairer.Lost()
	}
	before := lb.p.last
	if len(d.events) > 0 {
		lb.p.push(d.events)
		if lb.seg.events == 0 && d.events[0].Time != 0 {
			lb.seg.start = lb.b.s.clock.rel(d.events[0].Time)
		}
		if lb.taken == 0 {
			lb.l.Start = lb.b.s.clock.toNS(lb.seg.start)
		}
		lb.seg.events += uint32(len(d.events))
		lb.seg.end = max(lb.seg.start, lb.b.s.clock.rel(lb.p.last))
	}
	lb.findGaps(d, before)
	lb.taken += uint64(len(d.events) + d.lost)
	if d.lost > 0 {
		lb.p.pairer.Lost()
	}
}

// spanEnded notes how a span ended.
func (lb *laneBuilder) spanEnded(index int32, c *reel.Call) {
	sp := &lb.l.spans[index]
	sp.end, sp.inside, sp.flags = max(sp.start, lb.b.s.clock.rel(c.End)), c.Inside, c.Flags
	if sp.stack == 0 && sp.depth == 0 {
		lb.busy(sp.start, sp.end)
	}
}

// busy adds a call at depth 0 to the overview.
func (lb *laneBuilder) busy(start, end uint64) {
	if lb.last {
		lb.l.tail = append(lb.l.tail, interval{start, end})
		return
	}
	lb.done.add(start, end)
}

// endSegment makes spans of what is open, packs the rest, and begins the next
// segment.
func (lb *laneBuilder) endSegment() {
	l, p := lb.l, lb.p
	st := p.pairer.State(p.known())
	for stack := range st.Stacks {
		for len(p.open) <= stack {
			p.open = append(p.open, nil)
		}
		for _, o := range st.Stacks[stack].Open {
			depth := len(p.open[stack])
			around := int32(-1)
			if depth > 0 {
				around = p.open[stack][depth-1]
			}
			l.need(stack, depth)
			p.open[stack] = append(p.open[stack], int32(len(l.spans)))
			l.spans = append(l.spans, span{start: lb.b.s.clock.rel(o.Start), fn: o.Func, sp: o.SP, around: around, depth: int32(depth), stack: uint16(stack)})
			lb.z.count(o.Func)
		}
	}
	if p.into == nil { // of a batch
		lb.z.begin(max(lb.b.density.finest(lb.seg.start), grainOfPart(lb.seg.end-lb.seg.start, fineShift)))
		lb.z.takeCalls(p.calls)
		p.calls = p.calls[:0]
	}
	for stack, rows := range lb.z.rows.stacks {
		if len(rows) > 0 {
			l.need(stack, len(rows)-1)
		}
	}
	for _, c := range lb.z.outer {
		lb.busy(c.start, c.end)
	}
	lb.z.outer = lb.z.outer[:0]
	lb.seg.summary = slices.Clone(lb.z.summary(&lb.seg, lb.bytes))
	lb.bytes = 0
	l.segments = append(l.segments, lb.seg)
	p.into = nil
	lb.beginSegment(st)
}

// finish ends the spans that are open at the end, and sums up the lane.
func (lb *laneBuilder) finish() {
	l, c := lb.l, &lb.b.s.clock
	end := max(lb.endTick, lb.p.last)
	if c.untimed {
		end = lb.p.ordinal
	}
	l.open = false
	lb.last = lb.b.growing
	st := lb.p.pairer.State(nil)
	l.current = uint16(st.Current)
	for stack := range st.Stacks {
		inside := uint64(0)
		if stack != st.Current { // the innermost waits
			inside = end - min(end, st.Stacks[stack].Since)
		}
		for d := len(st.Stacks[stack].Open) - 1; d >= 0; d-- {
			o := &st.Stacks[stack].Open[d]
			sp := &l.spans[lb.p.open[stack][d]]
			sp.end = max(sp.start, c.rel(end))
			sp.inside, sp.flags = o.Inside+inside, reel.Unfinished
			if o.Lost {
				sp.flags |= reel.AcrossLoss
			}
			inside = sp.end - sp.start
			if stack == 0 && d == 0 {
				lb.busy(sp.start, sp.end)
			}
			l.open = true
		}
	}
	lb.lastGaps(end)
	l.Calls = lb.calls + lb.p.pairer.Calls
	l.Rows = 0
	for _, n := range l.rows {
		l.Rows += int(n)
	}
	last := uint64(0)
	if n := len(l.segments); n > 0 {
		last = l.segments[n-1].end
	}
	if l.open {
		last = max(last, c.rel(end))
	}
	l.End = c.toNS(last)
	if !lb.b.growing {
		l.resume = nil
	}
}
