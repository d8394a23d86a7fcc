package timeline

import (
	"context"
	"math"
	"sort"

	"github.com/callreel/callreel/reel"
)

// Visitor is told of calls as they begin and end. A Call is valid during the
// call only.
type Visitor struct {
	// Enter is told of a call that begins, or is open where the range begins:
	// outer ones before those in them. End and Inside are not known yet.
	Enter func(lane uint32, c *reel.Call)
	// Leave is told of each of these calls, inner ones first, with its true
	// times in ticks even where they are out of the range. It returns false to
	// stop.
	Leave func(lane uint32, c *reel.Call) bool
	// Paused and Resumed, if set, are told when a lane's stack begins to wait for others of the same thread, and when it goes on, in ticks. A
	// stack may have been paused long before the range, and go on behind it.
	Paused, Resumed func(lane uint32, stack int, tick uint64)
}

// Visit gives the calls of lanes, nil being all, that are open between from and
// to (exclusive), if only for an instant; to is to the end if it is
// math.MaxUint64. Enter and Leave nest in each stack of each lane. Threads come
// one after the other, goroutines in the order in which they ran. Several
// ranges may be visited at once; wherever one begins, that takes no more than
// decoding a segment of each lane, or a batch.
func (t *Timeline) Visit(ctx context.Context, lanes []uint32, from, to uint64, v Visitor) error {
	s := t.live.Load()
	x := &visit{ctx: ctx, s: s, from: s.clock.toTicks(from), to: math.MaxUint64, v: v}
	if to != math.MaxUint64 {
		x.to = s.clock.toTicks(to)
	}
	if s.f.Header().Goroutines {
		x.goroutines(lanes)
		return ctx.Err()
	}
	if lanes == nil {
		for i := range s.lanes {
			lanes = append(lanes, uint32(i))
		}
	}
	for _, lane := range lanes {
		if uint64(lane) < uint64(len(s.lanes)) && !x.over() {
			x.thread(s.lanes[lane])
		}
	}
	return ctx.Err()
}

// Tick is the first tick, as reel.Call has it, that is at a time or later.
func (t *Timeline) Tick(ns uint64) uint64 {
	c := &t.live.Load().clock
	tick := c.toTicks(ns)
	return tick + min(c.first, math.MaxUint64-tick)
}

// NS is the time of a tick.
func (t *Timeline) NS(tick uint64) uint64 {
	c := &t.live.Load().clock
	return c.toNS(c.rel(tick))
}

// Row is the row of a lane in which a call of that depth on that stack is.
func (t *Timeline) Row(lane uint32, stack, depth int) int {
	s := t.live.Load()
	if uint64(lane) >= uint64(len(s.lanes)) {
		return depth
	}
	return s.lanes[lane].row(keyOf(stack, depth))
}

// visit is one replay.
type visit struct {
	ctx      context.Context
	s        *snapshot
	from, to uint64 // ticks from the start
	v        Visitor
	stopped  bool
}

func (x *visit) over() bool { return x.stopped || x.ctx.Err() != nil }

func (x *visit) leave(lane uint32, c *reel.Call) {
	if !x.stopped {
		x.stopped = !x.v.Leave(lane, c)
	}
}

// laneVisit is the replay of a lane.
type laneVisit struct {
	*visit
	lane  *lane
	p     *pairing
	begun bool // the range has
	past  bool // the range's end is
}

// take gives the next events to the pairer, up to where the range begins and
// ends by itself.
func (l *laneVisit) take(events []reel.Event, until func(events []reel.Event, at uint64) int) {
	if !l.begun {
		n := until(events, l.from)
		l.p.push(events[:n])
		if events = events[n:]; len(events) == 0 {
			return
		}
		l.begin()
	}
	if !l.past && l.to != math.MaxUint64 {
		n := until(events, l.to)
		l.p.push(events[:n])
		events = events[n:]
		l.past = len(events) > 0
	}
	l.p.push(events)
}

// untilTime returns what counts the events before a time.
func (x *visit) untilTime(w *worker) func(events []reel.Event, at uint64) int {
	if x.s.clock.untimed { // push will give events their numbers
		return func(events []reel.Event, at uint64) int {
			return int(min(uint64(len(events)), max(at, w.p.ordinal+1)-w.p.ordinal-1))
		}
	}
	return func(events []reel.Event, at uint64) int {
		for i := range events {
			if t := events[i].Time; t != 0 && x.s.clock.rel(t) >= at {
				return i
			}
		}
		return len(events)
	}
}

// begin tells of what is open where the range begins.
func (l *laneVisit) begin() {
	l.begun = true
	state := l.p.pairer.State(nil)
	for stack, st := range state.Stacks {
		for depth, o := range st.Open {
			c := reel.Call{Func: o.Func, Depth: depth, Stack: stack, SP: o.SP, Start: o.Start}
			if o.Lost {
				c.Flags = reel.AcrossLoss
			}
			if sp := l.span(stack, depth); sp != nil {
				c = l.spanEntered(sp)
			}
			l.enter(&c)
		}
		if stack != state.Current && len(st.Open) > 0 {
			l.paused(l.lane.ID, stack, st.Since)
		}
	}
}

// paused tells that a stack waits.
func (x *visit) paused(lane uint32, stack int, since uint64) {
	if x.v.Paused != nil {
		x.v.Paused(lane, stack, since)
	}
}

// switched takes the change of the current stack.
func (l *laneVisit) switched(from, to int, tick uint64) {
	if l.begun && !l.past && l.v.Paused != nil {
		l.v.Paused(l.lane.ID, from, tick)
		l.v.Resumed(l.lane.ID, to, tick)
	}
}

// span is the span that is open at a depth of a stack; nil if that is a call of
// the segment.
func (l *laneVisit) span(stack, depth int) *span {
	if stack < len(l.p.open) && depth < len(l.p.open[stack]) {
		return &l.lane.spans[l.p.open[stack][depth]]
	}
	return nil
}

func (l *laneVisit) enter(c *reel.Call) {
	if l.begun && !l.past {
		l.v.Enter(l.lane.ID, c)
	}
}

// end takes the end of a call: of one that was told of, if it ends in the range
// or began before its end.
func (l *laneVisit) end(c *reel.Call) {
	if sp := l.span(c.Stack, c.Depth); sp != nil { // the pairing doesn't know its beginning
		*c = l.spanCall(sp)
		l.p.open[c.Stack] = l.p.open[c.Stack][:c.Depth]
	}
	if l.begun && l.s.clock.rel(c.Start) < l.to {
		l.leave(l.lane.ID, c)
	}
}

// thread replays a thread's lane.
func (x *visit) thread(l *lane) {
	first := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].end >= x.from })
	v := &laneVisit{visit: x, lane: l}
	i := first
	if first < len(l.segments) {
		w := x.s.takeWorker()
		defer x.s.workers.Put(w)
		seg := &l.segments[first]
		w.p.resume(l, seg)
		defer v.attach(w)()
		for ; i < len(l.segments) && !v.past; i++ {
			w.p.open = l.openSpans(&l.segments[i])
			x.chunks(l, &l.segments[i], w, func(events []reel.Event) { v.take(events, x.untilTime(w)) })
			if x.over() {
				return
			}
		}
	}
	x.rest(l, i, v.begun)
}

// attach makes a worker's pairing tell of its calls; detach ends that.
func (l *laneVisit) attach(w *worker) (detach func()) {
	l.p = w.p
	w.p.pairer.OnEntry, w.p.pairer.OnCall, w.p.pairer.OnSwitch = l.enter, l.end, l.switched
	return func() { w.p.pairer.OnEntry, w.p.pairer.OnCall, w.p.pairer.OnSwitch = nil, w.p.end, nil }
}

// chunks gives the events of a segment's chunks.
func (x *visit) chunks(l *lane, seg *segment, w *worker, take func([]reel.Event)) {
	chunks := x.s.f.Chunks(l.Thread)
	for i := int(seg.chunk); i < int(seg.chunk+seg.chunks) && i < len(chunks) && !x.over(); i++ {
		if i > 0 && chunks[i].Seq != chunks[i-1].Seq+1 {
			w.p.pairer.Lost()
		}
		events, err := x.s.f.Decode(chunks[i], w.buf)
		w.buf = events
		take(events)
		if err != nil {
			w.p.pairer.Lost()
		}
	}
}

// rest leaves the calls that are open where the segment next of a lane begins,
// or at its end: their own ends are known. If the range has not begun for the
// lane so far, they are entered first.
func (x *visit) rest(l *lane, next int, begun bool) {
	list := l.openBefore(next)
	for i := len(list) - 1; i >= 0 && !begun; i-- {
		if sp := &l.spans[list[i]]; x.has(sp) {
			c := x.spanEntered(sp)
			x.v.Enter(l.ID, &c)
			if sp.stack != l.currentIn(next) { // since the lane's last event, which was before the range
				x.paused(l.ID, int(sp.stack), 0)
			}
		}
	}
	for _, k := range list {
		if sp := &l.spans[k]; x.has(sp) && !x.over() {
			c := x.spanCall(sp)
			x.leave(l.ID, &c)
		}
	}
}

// has says whether a span is open in the range.
func (x *visit) has(sp *span) bool { return sp.start < x.to && (sp.end > x.from || sp.start >= x.from) }

// openBefore are the spans that are open where a segment begins, or at the end
// of all, inner ones first.
func (l *lane) openBefore(segment int) []int32 {
	if len(l.segments) == 0 {
		return nil
	}
	if segment == len(l.segments) {
		return l.openAtEnd()
	}
	var list []int32
	for _, top := range l.segments[segment].stacks {
		for k := top.top; k >= 0; k = l.spans[k].around {
			list = append(list, k)
		}
	}
	return list
}

// currentIn is the stack that is the current one where a segment begins, or at the end of all.
func (l *lane) currentIn(segment int) uint16 {
	if segment < len(l.segments) {
		return l.segments[segment].current
	}
	return l.current
}

func (x *visit) spanCall(sp *span) reel.Call {
	first := x.s.clock.first
	return reel.Call{Func: sp.fn, Depth: int(sp.depth), Stack: int(sp.stack), SP: sp.sp, Start: sp.start + first, End: sp.end + first, Inside: sp.inside, Flags: sp.flags}
}

// spanEntered is a span as it is entered.
func (x *visit) spanEntered(sp *span) reel.Call {
	c := x.spanCall(sp)
	c.End, c.Inside, c.Flags = 0, 0, c.Flags&reel.AcrossLoss
	return c
}
