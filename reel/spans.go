package reel

import "slices"

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
	// Depth is how many spans of the thread were open around it.
	Depth int
	// Async says that it is an asynchronous one, which ID tells from others of its Title.
	Async bool
	ID    uint64
	Steps []SpanStep
	// Values are those of its beginning, EndValues those of its end, whose marker is EndMarker.
	Values, EndValues []Value
	EndMarker         uint32
	// Unstarted says that its beginning isn't in the reel, which is then its Begin; Unfinished that its end isn't. One whose end is missing
	// though that of a span around it is there ends with that.
	Unstarted, Unfinished bool
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
	// Lost counts marks that are left out for want of memory.
	Lost uint64

	f     *File
	lanes map[spanLane][]openSpan
	async map[asyncKey]*Span
	flows map[asyncKey]Flow
	open  int
	kept  int // values
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

type openSpan struct {
	Span
	pair, provider string
}

// NewSpanPairer returns a pairer for the marks of a reel.
func NewSpanPairer(f *File) *SpanPairer {
	return &SpanPairer{f: f, lanes: map[spanLane][]openSpan{}, async: map[asyncKey]*Span{}, flows: map[asyncKey]Flow{}}
}

// Push takes the next mark, of the thread with the key.
func (p *SpanPairer) Push(thread uint32, x *Mark) {
	m, ok := p.f.Marker(x.Marker)
	if !ok {
		return
	}
	switch m.Kind {
	case MarkBegin:
		p.begin(thread, x, m)
	case MarkEnd:
		p.end(thread, x, m)
	case MarkAsyncBegin, MarkAsyncStep, MarkAsyncEnd, MarkFlowOut, MarkFlowIn:
		id, ok := m.IDOf(x)
		if !ok {
			return
		}
		k := asyncKey{p.process(thread), p.pairOf(m, x), id}
		if m.Kind >= MarkFlowOut {
			p.flow(thread, x, m, k)
		} else {
			p.asynchronous(thread, x, m, k)
		}
	}
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

func (p *SpanPairer) lane(thread uint32, goroutine uint64) spanLane {
	if goroutine != 0 {
		return spanLane{goroutine: goroutine}
	}
	return spanLane{thread: thread}
}

// keep copies values for a span.
func (p *SpanPairer) keep(list []Value) []Value {
	if len(list) == 0 || p.kept+len(list) > maxKept {
		return nil
	}
	p.kept += len(list)
	return slices.Clone(list)
}

func (p *SpanPairer) begin(thread uint32, x *Mark, m *Marker) {
	k := p.lane(thread, x.Goroutine)
	open := p.lanes[k]
	if p.open >= maxOpenSpans || len(open) >= maxSpanDepth {
		p.Lost++
		return
	}
	p.open++
	p.lanes[k] = append(open, openSpan{
		Span: Span{Begin: x.Time, Marker: x.Marker, Thread: thread, Goroutine: x.Goroutine, Title: m.TitleOf(x), Depth: len(open), Values: p.keep(x.Values)},
		pair: p.pairOf(m, x), provider: m.Provider,
	})
}

func (p *SpanPairer) end(thread uint32, x *Mark, m *Marker) {
	k, pair := p.lane(thread, x.Goroutine), p.pairOf(m, x)
	open := p.lanes[k]
	at := len(open) - 1
	for at >= 0 && (pair != "" && open[at].pair != pair || open[at].provider != m.Provider) {
		at--
	}
	if at < 0 { // it was open when the recording began
		s := Span{Begin: p.f.FirstTick(), End: x.Time, Marker: x.Marker, Thread: thread, EndThread: thread, Goroutine: x.Goroutine, Title: m.TitleOf(x),
			Unstarted: true, EndMarker: x.Marker, EndValues: p.keep(x.Values)}
		if s.Begin = min(s.Begin, s.End); s.Title == "" {
			return // who knows what
		}
		p.give(&s)
		return
	}
	for i := len(open) - 1; i >= at; i-- {
		s := open[i].Span
		s.End, s.EndThread = x.Time, thread
		if i > at {
			s.Unfinished = true
		} else {
			s.EndMarker, s.EndValues = x.Marker, p.keep(x.Values)
		}
		p.give(&s)
	}
	p.open -= len(open) - at
	if at == 0 {
		delete(p.lanes, k)
		return
	}
	p.lanes[k] = open[:at]
}

func (p *SpanPairer) asynchronous(thread uint32, x *Mark, m *Marker, k asyncKey) {
	s := p.async[k]
	switch m.Kind {
	case MarkAsyncBegin:
		if s != nil { // the end of the one before is missing
			s.End, s.Unfinished = x.Time, true
			p.give(s)
		} else if len(p.async) >= maxOpenSpans {
			p.Lost++
			return
		}
		p.async[k] = &Span{Begin: x.Time, Marker: x.Marker, Thread: thread, Goroutine: x.Goroutine, Title: m.TitleOf(x), Async: true, ID: k.id, Values: p.keep(x.Values)}
	case MarkAsyncStep:
		if s == nil || len(s.Steps) >= maxSpanSteps {
			return
		}
		s.Steps = append(s.Steps, SpanStep{x.Time, x.Marker, thread, p.keep(x.Values)})
	case MarkAsyncEnd:
		if s == nil {
			s = &Span{Begin: min(p.f.FirstTick(), x.Time), Marker: x.Marker, Thread: thread, Goroutine: x.Goroutine, Title: m.TitleOf(x), Async: true, ID: k.id, Unstarted: true}
		}
		delete(p.async, k)
		s.End, s.EndThread, s.EndMarker, s.EndValues = x.Time, thread, x.Marker, p.keep(x.Values)
		p.give(s)
	}
}

func (p *SpanPairer) flow(thread uint32, x *Mark, m *Marker, k asyncKey) {
	if m.Kind == MarkFlowOut {
		if _, known := p.flows[k]; !known && len(p.flows) >= maxOpenSpans {
			p.Lost++
			return
		}
		p.flows[k] = Flow{From: x.Time, FromThread: thread, FromMarker: x.Marker, FromGoroutine: x.Goroutine, Title: m.TitleOf(x), ID: k.id}
		return
	}
	w, ok := p.flows[k] // it stays: one may arrive at several places
	if !ok {
		return
	}
	w.To, w.ToThread, w.ToMarker, w.ToGoroutine = x.Time, thread, x.Marker, x.Goroutine
	if p.OnFlow != nil {
		p.OnFlow(&w)
	}
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

// Finish gives the spans that are open: they last until their thread ends, or the recording does. In order of their beginning.
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
	for _, open := range p.lanes {
		for i := range open {
			end(&open[i].Span)
		}
	}
	for _, s := range p.async {
		end(s)
	}
	slices.SortFunc(left, func(a, b *Span) int {
		switch {
		case a.Begin != b.Begin:
			return compareUint64(a.Begin, b.Begin)
		case a.Thread != b.Thread:
			return compareUint64(uint64(a.Thread), uint64(b.Thread))
		case a.ID != b.ID:
			return compareUint64(a.ID, b.ID)
		}
		return a.Depth - b.Depth
	})
	for _, s := range left {
		p.give(s)
	}
	p.lanes, p.async, p.open = map[spanLane][]openSpan{}, map[asyncKey]*Span{}, 0
}

func compareUint64(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
