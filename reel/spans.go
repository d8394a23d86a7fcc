package reel

import (
	"cmp"
	"slices"
)

// Span is what lies between a mark that begins it and one that ends it. Spans are of a thread, in Go programs of a goroutine; asynchronous
// ones may end on another thread.
type Span struct {
	Begin, End uint64 // ticks
	// Marker began it, or ended it if its beginning isn't in the reel.
	Marker    uint32
	Thread    uint32 // key; the one that began it
	EndThread uint32 // key
	Goroutine uint64
	Title     string
	// Pair is what its beginning and its end have in common, for a provider.
	Pair string
	// Depth is the lowest that no other open span of the thread has: how many lie around it, unless they cross.
	Depth int
	// Async says that it is an asynchronous one, which ID tells from others of its Title.
	Async bool
	ID    uint64
	Steps []SpanStep
	// Values are those of its beginning, EndValues those of its end, whose marker is EndMarker.
	Values, EndValues []Value
	EndMarker         uint32
	// Unstarted says that its beginning isn't in the reel, which is then its Begin; Unfinished that its end isn't. One that was left
	// open ends where the span around it did, or another of its Pair began.
	Unstarted, Unfinished bool
	// Tag is the caller's: what [SpanPairer.OnBegin] sets it to, OnSpan finds.
	Tag any
}

// SpanStep is a step of an asynchronous span.
type SpanStep struct {
	Time   uint64
	Marker uint32
	Thread uint32
	Values []Value
}

// Flow is an arrow from where something left to where it arrived.
type Flow struct {
	From, To             uint64 // ticks
	FromThread, ToThread uint32 // keys
	FromMarker, ToMarker uint32
	FromGoroutine        uint64
	ToGoroutine          uint64
	Title                string
	ID                   uint64
	// Tag is the caller's: what [SpanPairer.OnOut] sets it to, OnFlow finds.
	Tag any
}

// Bounds of what is open at a time: what is beyond isn't paired, and Lost counts it.
const (
	maxOpenSpans = 1 << 18
	maxSpanDepth = 1 << 12
	maxSpanSteps = 256
	maxKept      = 1 << 20 // values of all open spans; those of further ones aren't kept
)

// SpanPairer pairs marks to spans and flows. It is given the marks of all threads in order of time, see [File.AllMarks]; without asynchronous
// ones and flows, and outside of Go programs, those of one thread after the other do.
type SpanPairer struct {
	// OnSpan is given each span when it ends, and at Finish those that didn't; OnFlow each arrow; both may be nil. What they are given is theirs.
	OnSpan func(*Span)
	OnFlow func(*Flow)
	// OnBegin is given each span when it begins, OnStep each step of an asynchronous one, and OnOut what leaves, whether or not it will arrive:
	// for those that can't wait for the end. They may be nil, and must not keep what they are given. The values of a mark that is being
	// pushed are better taken from the mark: of too many they aren't kept.
	OnBegin func(*Span)
	OnStep  func(*Span, *SpanStep)
	OnOut   func(*Flow)
	// Lost counts marks that are left out for want of memory.
	Lost uint64

	f     *File
	lanes map[spanLane]*openSpans
	facts map[pairKey]*pairFacts
	async map[asyncKey]*Span
	flows map[asyncKey]Flow
	open  int
	kept  int // values
	lost  int // spans that are in openSpans.gone
	// resumed is when pauses ended, in order, by process; 0 is all.
	resumed map[int][]uint64
}

type spanLane struct {
	thread    uint32
	goroutine uint64
}

type asyncKey struct {
	process int
	pair    string
	id      uint64
}

// NewSpanPairer returns a pairer for the marks of a reel.
func NewSpanPairer(f *File) *SpanPairer {
	p := &SpanPairer{f: f, lanes: map[spanLane]*openSpans{}, facts: map[pairKey]*pairFacts{}, async: map[asyncKey]*Span{}, flows: map[asyncKey]Flow{}, resumed: map[int][]uint64{}}
	for _, x := range f.pauses {
		if x.To != 0 {
			p.resumed[x.Process] = append(p.resumed[x.Process], x.To)
		}
	}
	for _, ends := range p.resumed {
		slices.Sort(ends)
	}
	return p
}

// Push takes the next mark, of the thread with the key. It returns false of one that belongs to nothing: an instant, a counter's value, one
// without an ID that needs one, an end of who knows what, a step or an arrival of what hasn't begun, and one that is lost.
func (p *SpanPairer) Push(thread uint32, x *Mark) bool {
	m, ok := p.f.Marker(x.Marker)
	if !ok {
		return false
	}
	switch m.Kind {
	case MarkBegin:
		return p.begin(thread, x, m)
	case MarkEnd:
		return p.end(thread, x, m)
	case MarkAsyncBegin, MarkAsyncStep, MarkAsyncEnd, MarkFlowOut, MarkFlowIn:
		id, ok := m.IDOf(x)
		if !ok {
			return false
		}
		k := asyncKey{p.process(thread), p.pairOf(m, x), id}
		if m.Kind >= MarkFlowOut {
			return p.flow(thread, x, m, k)
		}
		return p.asynchronous(thread, x, m, k)
	}
	return false
}

// pairOf is what a mark has in common with those it belongs to.
func (p *SpanPairer) pairOf(m *Marker, x *Mark) string {
	if m.Pair == "" && m.TitleArg >= 0 {
		return m.TitleOf(x)
	}
	return m.Pair
}

func (p *SpanPairer) process(thread uint32) int {
	if i, ok := p.f.byKey[thread]; ok {
		return p.f.threads[i].Process
	}
	return 0
}

// keep copies values for a span.
func (p *SpanPairer) keep(list []Value) []Value {
	if len(list) == 0 || p.kept+len(list) > maxKept {
		return nil
	}
	p.kept += len(list)
	return slices.Clone(list)
}

func (p *SpanPairer) asynchronous(thread uint32, x *Mark, m *Marker, k asyncKey) bool {
	s := p.async[k]
	switch m.Kind {
	case MarkAsyncBegin:
		if s != nil { // the end of the one before is missing
			s.End, s.Unfinished = x.Time, true
			p.give(s)
		} else if len(p.async) >= maxOpenSpans {
			p.Lost++
			return false
		}
		s = &Span{Begin: x.Time, Marker: x.Marker, Thread: thread, Goroutine: x.Goroutine, Title: m.TitleOf(x), Async: true, ID: k.id, Values: p.keep(x.Values)}
		p.async[k] = s
		if p.OnBegin != nil {
			p.OnBegin(s)
		}
	case MarkAsyncStep:
		if s == nil {
			return false
		}
		step := SpanStep{Time: x.Time, Marker: x.Marker, Thread: thread}
		if len(s.Steps) < maxSpanSteps {
			step.Values = p.keep(x.Values)
			s.Steps = append(s.Steps, step)
		}
		if p.OnStep != nil {
			p.OnStep(s, &step)
		}
	case MarkAsyncEnd:
		if s == nil {
			s = &Span{Begin: min(p.f.FirstTick(), x.Time), Marker: x.Marker, Thread: thread, Goroutine: x.Goroutine, Title: m.TitleOf(x), Async: true, ID: k.id, Unstarted: true}
		}
		delete(p.async, k)
		s.End, s.EndThread, s.EndMarker, s.EndValues = x.Time, thread, x.Marker, p.keep(x.Values)
		p.give(s)
	}
	return true
}

func (p *SpanPairer) flow(thread uint32, x *Mark, m *Marker, k asyncKey) bool {
	if m.Kind == MarkFlowOut {
		if _, known := p.flows[k]; !known && len(p.flows) >= maxOpenSpans {
			p.Lost++
			return false
		}
		w := Flow{From: x.Time, FromThread: thread, FromMarker: x.Marker, FromGoroutine: x.Goroutine, Title: m.TitleOf(x), ID: k.id}
		if p.OnOut != nil {
			p.OnOut(&w)
		}
		p.flows[k] = w
		return true
	}
	w, ok := p.flows[k] // it stays: one may arrive at several places
	if !ok {
		return false
	}
	w.To, w.ToThread, w.ToMarker, w.ToGoroutine = x.Time, thread, x.Marker, x.Goroutine
	if p.OnFlow != nil {
		p.OnFlow(&w)
	}
	return true
}

func (p *SpanPairer) give(s *Span) {
	p.kept -= len(s.Values) + len(s.EndValues)
	for i := range s.Steps {
		p.kept -= len(s.Steps[i].Values)
	}
	if p.OnSpan != nil {
		p.OnSpan(s)
	}
}

// Finish gives the spans that are open: they last until their thread ends, or the recording does, if it isn't known that they ended before.
// In order of their beginning.
func (p *SpanPairer) Finish() {
	var left []*Span
	end := func(s *Span) {
		s.End, s.Unfinished, s.EndThread = p.f.lastTick, true, s.Thread
		if i, ok := p.f.byKey[s.Thread]; ok && !s.Async && s.Goroutine == 0 {
			s.End = p.f.EndOf(&p.f.threads[i].Thread)
		}
		s.End = max(s.End, s.Begin)
		left = append(left, s)
	}
	for _, o := range p.lanes {
		for _, s := range o.list {
			if end(&s.Span); p.left(s) {
				s.End = s.until
			}
		}
	}
	for _, s := range p.async {
		end(s)
	}
	slices.SortFunc(left, func(a, b *Span) int {
		return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Depth, b.Depth))
	})
	for _, s := range left {
		p.give(s)
	}
	p.lanes, p.async, p.open = map[spanLane]*openSpans{}, map[asyncKey]*Span{}, 0
}
