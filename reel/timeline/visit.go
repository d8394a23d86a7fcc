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
}

// Visit gives the calls of lanes, nil being all, that are open between from and
// to (exclusive), if only for an instant; to is to the end if it is
// math.MaxUint64. Enter and Leave nest in each stack of each lane. Threads come
// one after the other, goroutines in the order in which they ran. Several
// ranges may be visited at once; where one begins costs no more than decoding a
// segment of each lane, but all before it in a Go program.
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
	entered  int // calls that are still to be left
}

func (x *visit) over() bool { return x.stopped || x.ctx.Err() != nil }

func (x *visit) leave(lane uint32, c *reel.Call) {
	x.entered--
	if !x.stopped {
		x.stopped = !x.v.Leave(lane, c)
	}
}

// laneVisit is the replay of a lane.
type laneVisit struct {
	*visit
	lane   uint32
	pairer *reel.Pairer
	push   func([]reel.Event) // to the pairer
	begun  bool               // the range has
	past   bool               // the range's end is
	// known, if set, puts in what the index knows of a call.
	known func(*reel.Call)
}

// take gives the next events to the pairer, up to where the range begins and
// ends by itself.
func (l *laneVisit) take(events []reel.Event, until func(events []reel.Event, at uint64) int) {
	if !l.begun {
		n := until(events, l.from)
		l.push(events[:n])
		if events = events[n:]; len(events) == 0 {
			return
		}
		l.begin()
	}
	if !l.past && l.to != math.MaxUint64 {
		n := until(events, l.to)
		l.push(events[:n])
		events = events[n:]
		l.past = len(events) > 0
	}
	l.push(events)
}

// untilTime counts the events before a time.
func (x *visit) untilTime(events []reel.Event, at uint64) int {
	for i := range events {
		if t := events[i].Time; t != 0 && x.s.clock.rel(t) >= at {
			return i
		}
	}
	return len(events)
}

// begin tells of what is open where the range begins.
func (l *laneVisit) begin() {
	l.begun = true
	for stack, st := range l.pairer.State(nil).Stacks {
		for depth, o := range st.Open {
			c := reel.Call{Func: o.Func, Depth: depth, Stack: stack, SP: o.SP, Start: o.Start}
			if o.Lost {
				c.Flags = reel.AcrossLoss
			}
			l.enter(&c)
		}
	}
}

func (l *laneVisit) enter(c *reel.Call) {
	if l.begun && !l.past {
		l.entered++
		l.v.Enter(l.lane, c)
	}
}

// end takes the end of a call: of one that was told of, if it ends in the range
// or began before its end.
func (l *laneVisit) end(c *reel.Call) {
	if l.known != nil {
		l.known(c)
	}
	if l.begun && l.s.clock.rel(c.Start) < l.to {
		l.leave(l.lane, c)
	}
}

// thread replays a thread's lane.
func (x *visit) thread(l *lane) {
	first := sort.Search(len(l.segments), func(i int) bool { return l.segments[i].end >= x.from })
	if first == len(l.segments) {
		x.openAtEnd(l)
		return
	}
	w := x.s.takeWorker()
	defer x.s.workers.Put(w)
	seg := &l.segments[first]
	w.p.begin(l.state(seg), l.openSpans(seg), seg.now)
	v := &laneVisit{visit: x, lane: l.ID, pairer: &w.p.pairer, push: w.p.push}
	v.known = func(c *reel.Call) {
		if c.Stack < len(w.p.open) && c.Depth < len(w.p.open[c.Stack]) {
			k := w.p.open[c.Stack][c.Depth]
			w.p.open[c.Stack] = w.p.open[c.Stack][:c.Depth]
			*c = x.spanCall(&l.spans[k])
		}
	}
	w.p.pairer.OnEntry, w.p.pairer.OnCall = v.enter, v.end
	defer func() { w.p.pairer.OnEntry, w.p.pairer.OnCall = nil, w.p.end }()
	until := x.untilTime
	if x.s.clock.untimed { // push will give events their numbers
		until = func(events []reel.Event, at uint64) int {
			return int(min(uint64(len(events)), max(at, w.p.ordinal+1)-w.p.ordinal-1))
		}
	}
	i := first
	for ; i < len(l.segments) && !v.past; i++ {
		w.p.open = l.openSpans(&l.segments[i])
		x.chunks(l, &l.segments[i], w, func(events []reel.Event) { v.take(events, until) })
		if x.over() {
			return
		}
	}
	if !v.begun {
		v.begin()
	}
	x.rest(l, i)
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

// rest leaves the calls that are open where the segment next begins: their ends
// are known.
func (x *visit) rest(l *lane, next int) {
	if next == len(l.segments) {
		for _, k := range l.openAtEnd() {
			x.leaveSpan(l, k)
		}
		return
	}
	for _, top := range l.segments[next].stacks {
		for k := top.top; k >= 0; k = l.spans[k].around {
			x.leaveSpan(l, k)
		}
	}
}

func (x *visit) leaveSpan(l *lane, k int32) {
	if sp := &l.spans[k]; sp.start < x.to && !x.over() {
		c := x.spanCall(sp)
		x.leave(l.ID, &c)
	}
}

func (x *visit) spanCall(sp *span) reel.Call {
	first := x.s.clock.first
	return reel.Call{Func: sp.fn, Depth: int(sp.depth), Stack: int(sp.stack), SP: sp.sp, Start: sp.start + first, End: sp.end + first, Inside: sp.inside, Flags: sp.flags}
}

// openAtEnd gives the calls that no event ended, of a lane whose last event is
// before the range.
func (x *visit) openAtEnd(l *lane) {
	if len(l.segments) == 0 {
		return
	}
	list := l.openAtEnd()
	for i := len(list) - 1; i >= 0; i-- {
		if sp := &l.spans[list[i]]; sp.end > x.from {
			c := x.spanCall(sp)
			c.End, c.Inside, c.Flags = 0, 0, 0
			x.entered++
			x.v.Enter(l.ID, &c)
		}
	}
	for _, k := range list {
		if l.spans[k].end > x.from {
			x.leaveSpan(l, k)
		}
	}
}
