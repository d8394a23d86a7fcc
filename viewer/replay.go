package viewer

import (
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// span is what is analysed: the calls of some lanes that are open, if only for an instant, from one time until another.
type span struct {
	from, to uint64   // nanoseconds, to exclusive
	lanes    []uint32 // in order; nil for all
}

// piece is a part of a span that is replayed at once. A call that reaches over several pieces is seen in each.
type piece struct {
	from, to   uint64 // nanoseconds
	start, end uint64 // the same in ticks, end exclusive
	first      bool   // of the span: calls that began before it are counted here
}

// counts says whether a call is to be counted in this piece, as it is in exactly one.
func (p *piece) counts(c *reel.Call) bool {
	return c.Start >= p.start || p.first && c.End > p.start
}

// within is how long the call was open in the piece, in ticks.
func (p *piece) within(c *reel.Call) uint64 {
	start, end := max(c.Start, p.start), min(c.End, p.end)
	return end - min(start, end)
}

// collector gathers something from calls. The calls of a lane come as they nest, those that are open when a piece begins or
// ends included.
type collector interface {
	begin(p *piece)
	enter(lane uint32, c *reel.Call)
	leave(lane uint32, c *reel.Call)
}

// ofStacks is a collector that wants to know which stacks of a lane wait for others.
type ofStacks interface {
	collector
	pause(lane uint32, stack int, tick uint64)
	resume(lane uint32, stack int, tick uint64)
}

// ofFunction is a collector that wants the calls of one function only, and only their ends.
type ofFunction interface {
	collector
	only() uint32
}

// How a span is cut: work for both ends of the list of processors, but no piece so small that finding its beginning, which
// takes about a chunk of each lane, would be most of the work.
const (
	piecesPerWorker = 4
	pieceEvents     = 1 << 20
)

// tellEvery is after how many calls an analysis says how far it is, and looks whether it is still wanted.
const tellEvery = 1 << 17

// analysis replays a span on all processors.
type analysis struct {
	recording *recording
	timeline  *timeline.Timeline
	ticket    string
	pieces    []piece
	total     uint64 // calls, about
	done      atomic.Uint64
	next      atomic.Int64
	told      rarely
}

// analyze gives all calls of the span to collectors, of which each processor makes one. Only one analysis runs at a time.
func (r *recording) analyze(ctx context.Context, tl *timeline.Timeline, s span, ticket string, fresh func() collector) ([]collector, error) {
	select {
	case r.server.turn <- struct{}{}:
		defer func() { <-r.server.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	a := &analysis{recording: r, timeline: tl, ticket: ticket}
	workers := runtime.GOMAXPROCS(0)
	a.cut(s, workers)
	workers = min(workers, len(a.pieces))
	collectors, errs := make([]collector, workers), make([]error, workers)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for i := range collectors {
		collectors[i] = fresh()
		wg.Go(func() {
			if errs[i] = catchFaults(func() error { return a.work(ctx, s.lanes, collectors[i]) }); errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return collectors, nil
}

// work takes pieces until there is none left.
func (a *analysis) work(ctx context.Context, lanes []uint32, c collector) error {
	for {
		i := int(a.next.Add(1)) - 1
		if i >= len(a.pieces) {
			return nil
		}
		p := &a.pieces[i]
		c.begin(p)
		calls := uint64(0)
		leave := func(lane uint32, call *reel.Call) bool {
			c.leave(lane, call)
			if calls++; calls%tellEvery == 0 {
				a.tell(tellEvery)
				return ctx.Err() == nil
			}
			return true
		}
		var err error
		if one, ok := c.(ofFunction); ok {
			err = a.timeline.VisitFunction(ctx, lanes, one.only(), p.from, p.to, leave)
		} else {
			v := timeline.Visitor{Enter: c.enter, Leave: leave}
			if s, ok := c.(ofStacks); ok {
				v.Paused, v.Resumed = s.pause, s.resume
			}
			err = a.timeline.Visit(ctx, lanes, p.from, p.to, v)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// tell says to the page that has asked how far the analysis is.
func (a *analysis) tell(calls uint64) {
	if done := a.done.Add(calls); a.ticket != "" && a.told.again() {
		a.recording.server.events.send("analysis", analysisEvent{a.ticket, min(done, a.total), a.total})
	}
}

// cut makes pieces of about as many events each.
func (a *analysis) cut(s span, workers int) {
	f := a.timeline.File()
	last := a.timeline.Duration()
	whole := piece{from: s.from, to: s.to, start: a.timeline.Tick(s.from), first: true}
	if s.to < last {
		whole.end = a.timeline.Tick(s.to)
	} else { // calls that begin at the very end are of it
		whole.to, whole.end = math.MaxUint64, math.MaxUint64
	}
	if s.from == 0 {
		whole.start = 0 // what is before the first tick, if it is damaged, is of the beginning
	}
	type stretch struct{ at, events uint64 }
	var list []stretch
	events := uint64(0)
	for _, thread := range a.threads(f, s.lanes) {
		for _, c := range f.Chunks(thread) {
			if c.Last < whole.start || c.First >= whole.end {
				continue
			}
			list = append(list, stretch{max(c.First, whole.start), uint64(c.Events)})
			events += uint64(c.Events)
		}
	}
	a.total = events / 2
	slices.SortFunc(list, func(x, y stretch) int { return cmp.Compare(x.at, y.at) })
	each := max(events/uint64(workers*piecesPerWorker), pieceEvents)
	rest, seen := whole, uint64(0)
	for _, c := range list {
		if seen += c.events; seen < each {
			continue
		}
		// The cut is where a nanosecond begins, so that timeline and collectors mean the same instant.
		at := a.timeline.NS(c.at)
		if at <= rest.from || at >= rest.to || at >= last {
			continue
		}
		cut := rest
		cut.to, cut.end = at, a.timeline.Tick(at)
		rest.from, rest.start, rest.first = cut.to, cut.end, false
		a.pieces = append(a.pieces, cut)
		seen = 0
	}
	a.pieces = append(a.pieces, rest)
}

// threads are the keys of the threads whose events are of the lanes.
func (a *analysis) threads(f *reel.File, lanes []uint32) []uint32 {
	var keys []uint32
	if lanes == nil || f.Header().Goroutines {
		for _, t := range f.Threads() {
			keys = append(keys, t.Key)
		}
		return keys
	}
	all := a.timeline.Lanes()
	for _, lane := range lanes {
		keys = append(keys, all[lane].Thread)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
