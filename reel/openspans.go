package reel

import (
	"math/bits"
	"slices"
)

// openSpans are those that a thread, or a goroutine, has open. Spans of different pairs may cross; those of one pair lie within each other.
type openSpans struct {
	list []*openSpan // in order of their beginnings
	rows []uint64    // bit i is set if there is one of Depth i
	// gone is how many of a pair were taken for stale: if an end comes that belongs to nothing, one of them wasn't.
	gone map[pairKey]int
}

type openSpan struct {
	Span
	provider string
	// outlived says that a span that was open when it began has ended since.
	outlived bool
	// until is the first that speaks of its end if that is missing: when it was outlived, or another of its pair began in it; hinted that there
	// is one.
	until  uint64
	hinted bool
	// within is how many of its pair have ended in it, those in others of its pair left out.
	within int
	// doubted says that each kind of doubt has been counted.
	doubted [2]bool
}

// pairKey tells pairs apart: an end belongs to a begin of the same provider.
type pairKey struct{ provider, pair string }

// pairFacts are what a reel has shown of a pair so far, by which spans that were left open are told from those that go on.
type pairFacts struct {
	// crosses is about spans that outlive others around them, recurs about spans that lie in others of their pair.
	crosses, recurs suspicion
}

// suspicion weighs how often something looked stale against how often it was not.
type suspicion struct{ raised, refuted int }

// stale says what to think the next time it looks so.
func (d *suspicion) stale() bool {
	d.raised++
	return 2*d.refuted < d.raised
}

// left says that one that the recording's end leaves open was left open before, where its hint says.
func (p *SpanPairer) left(s *openSpan) bool {
	f := p.factsOf(pairKey{s.provider, s.Pair})
	return s.outlived && f != nil && 2*f.crosses.refuted <= f.crosses.raised
}

const (
	// patience is how many spans of a pair may come and go in one of the same pair of which it isn't known that it recurs.
	patience = 16
	// maxGone is how many that were taken for stale are kept in mind though their threads have nothing open.
	maxGone = 1 << 16
	// maxPairs is of how many pairs facts are kept; of others nothing is taken for stale.
	maxPairs = 1 << 16
)

// take returns the lowest depth that is free, and takes it.
func (o *openSpans) take() int {
	for i, w := range o.rows {
		if w != ^uint64(0) {
			bit := bits.TrailingZeros64(^w)
			o.rows[i] |= 1 << bit
			return i*64 + bit
		}
	}
	o.rows = append(o.rows, 1)
	return (len(o.rows) - 1) * 64
}

// free is the lowest depth that is free.
func (o *openSpans) free() int {
	for i, w := range o.rows {
		if w != ^uint64(0) {
			return i*64 + bits.TrailingZeros64(^w)
		}
	}
	return len(o.rows) * 64
}

// drop takes out the one with an index.
func (o *openSpans) drop(i int) *openSpan {
	s := o.list[i]
	o.list = slices.Delete(o.list, i, i+1)
	o.rows[s.Depth/64] &^= 1 << (s.Depth % 64)
	return s
}

// below is the index of the innermost one of a pair below another, -1 if there is none. Without a name any of the provider is one.
func (o *openSpans) below(i int, k pairKey) int {
	for i--; i >= 0; i-- {
		if s := o.list[i]; (k.pair == "" || s.Pair == k.pair) && s.provider == k.provider {
			break
		}
	}
	return i
}

// factsOf is what is known of a pair, nil if there are too many.
func (p *SpanPairer) factsOf(k pairKey) *pairFacts {
	f := p.facts[k]
	if f == nil && len(p.facts) < maxPairs {
		f = &pairFacts{}
		p.facts[k] = f
	}
	return f
}

func (p *SpanPairer) lane(thread uint32, goroutine uint64) spanLane {
	if goroutine != 0 {
		return spanLane{goroutine: goroutine}
	}
	return spanLane{thread: thread}
}

func (p *SpanPairer) begin(thread uint32, x *Mark, m *Marker) bool {
	lane := p.lane(thread, x.Goroutine)
	o := p.lanes[lane]
	if o == nil {
		if p.open >= maxOpenSpans {
			p.Lost++
			return false
		}
		o = &openSpans{}
		p.lanes[lane] = o
	}
	k := pairKey{m.Provider, p.pairOf(m, x)}
	if len(o.list) > 0 {
		p.closeStale(o, k, thread, x.Time)
	}
	switch {
	case len(o.list) >= maxSpanDepth: // the one that has waited longest for its end gives way
		p.unfinished(o, 0, x.Time)
	case p.open >= maxOpenSpans:
		p.Lost++
		return false
	}
	p.open++
	s := &openSpan{
		Span:     Span{Begin: x.Time, Marker: x.Marker, Thread: thread, Goroutine: x.Goroutine, Title: m.TitleOf(x), Pair: k.pair, Depth: o.take(), Values: p.keep(x.Values)},
		provider: k.provider,
	}
	o.list = append(o.list, s)
	if p.OnBegin != nil {
		p.OnBegin(&s.Span)
	}
	return true
}

// closeStale ends those of a pair whose end was never passed, as far as that can be known where another one begins. Spans of one pair may lie
// within each other, so that one is open doesn't tell. What tells is that a span around it has ended, or that there was a pause: then it is
// none that recurs; and that many of its pair have come and gone in it, and none has ever been seen to recur. Either is believed as long as it
// was right of most, which later ends show.
func (p *SpanPairer) closeStale(o *openSpans, k pairKey, thread uint32, at uint64) {
	i := o.below(len(o.list), k)
	f := p.factsOf(k)
	if i < 0 || f == nil {
		return
	}
	o.list[i].hint(at)
	process := p.process(thread)
	for within := 0; i >= 0; {
		s, stale := o.list[i], false
		if s.outlived || p.paused(process, s.Begin, at) {
			stale = s.doubt(0, &f.crosses)
		}
		if within += s.within; within >= patience {
			stale = s.doubt(1, &f.recurs) || stale
		} else if !stale && 2*f.recurs.refuted > f.recurs.raised {
			break // it recurs: others aren't looked at
		}
		if stale {
			within -= s.within // which is now of the one around it
			p.leave(o, i, at)
		}
		i = o.below(i, k)
	}
}

// leave ends the one with an index as stale, and with it those that began in it before it was left: what jumps out of one jumps out of all,
// but for those that go on over others' ends.
func (p *SpanPairer) leave(o *openSpans, i int, at uint64) {
	until := o.list[i].until
	p.gone(o, i, at)
	for i < len(o.list) && o.list[i].Begin < until {
		s := o.list[i]
		if f := p.factsOf(pairKey{s.provider, s.Pair}); f == nil || !s.doubt(0, &f.crosses) {
			i++
			continue
		}
		s.hint(until)
		p.gone(o, i, at)
	}
}

// gone ends the one with an index as stale.
func (p *SpanPairer) gone(o *openSpans, i int, at uint64) {
	if o.gone == nil {
		o.gone = map[pairKey]int{}
	}
	o.gone[pairKey{o.list[i].provider, o.list[i].Pair}]++
	p.lost++
	p.unfinished(o, i, at)
}

// hint notes what speaks of its end.
func (s *openSpan) hint(at uint64) {
	if !s.hinted {
		s.hinted, s.until = true, at
	}
}

// doubt says whether it is stale by one kind of doubt, which is counted once.
func (s *openSpan) doubt(kind int, d *suspicion) bool {
	if s.doubted[kind] {
		return false
	}
	s.doubted[kind] = true
	return d.stale()
}

// paused says whether a pause of a process lies between two ticks, as far as its end.
func (p *SpanPairer) paused(process int, from, to uint64) bool {
	for _, of := range [...]int{0, process} {
		ends := p.resumed[of]
		if i, _ := slices.BinarySearch(ends, to+1); i > 0 && ends[i-1] > from {
			return true
		}
	}
	return false
}

// unfinished ends the one with an index, whose own end isn't there. What has ended in it has ended in the one around it.
func (p *SpanPairer) unfinished(o *openSpans, i int, at uint64) {
	s := o.list[i]
	if around := o.below(i, pairKey{s.provider, s.Pair}); around >= 0 && s.Pair != "" {
		o.list[around].within += s.within
	}
	o.drop(i)
	p.open--
	s.hint(at)
	s.End, s.EndThread, s.Unfinished = s.until, s.Thread, true
	p.give(&s.Span)
}

func (p *SpanPairer) end(thread uint32, x *Mark, m *Marker) bool {
	lane, k := p.lane(thread, x.Goroutine), pairKey{m.Provider, p.pairOf(m, x)}
	o := p.lanes[lane]
	i := -1
	if o != nil {
		i = o.below(len(o.list), k)
	}
	if i < 0 {
		return p.unstarted(thread, x, m, o, k)
	}
	s := o.list[i]
	k.pair = s.Pair
	for _, in := range o.list[i+1:] {
		in.outlived = true
		in.hint(x.Time)
	}
	around := o.below(i, k)
	if f := p.factsOf(k); f != nil {
		if s.outlived || p.paused(p.process(thread), s.Begin, x.Time) {
			f.crosses.refuted++
		}
		if s.within > 0 {
			f.recurs.refuted++
		}
	}
	if around >= 0 {
		o.list[around].within++
	}
	o.drop(i)
	p.open--
	s.End, s.EndThread, s.EndMarker, s.EndValues = x.Time, thread, x.Marker, p.keep(x.Values)
	p.give(&s.Span)
	if len(o.list) == 0 && (len(o.gone) == 0 || p.lost > maxGone) {
		delete(p.lanes, lane)
	}
	return true
}

// unstarted gives a span that was open when the recording began, or was taken for stale.
func (p *SpanPairer) unstarted(thread uint32, x *Mark, m *Marker, o *openSpans, k pairKey) bool {
	s := Span{Begin: min(p.f.FirstTick(), x.Time), End: x.Time, Marker: x.Marker, Thread: thread, EndThread: thread, Goroutine: x.Goroutine, Title: m.TitleOf(x),
		Pair: k.pair, Unstarted: true, EndMarker: x.Marker}
	if s.Title == "" {
		return false // who knows what
	}
	if o != nil {
		if s.Depth = o.free(); o.gone[k] > 0 {
			if o.gone[k]--; o.gone[k] == 0 {
				delete(o.gone, k)
			}
			p.lost--
			if f := p.factsOf(k); f != nil {
				f.crosses.refuted++
				f.recurs.refuted++
			}
		}
	}
	s.EndValues = p.keep(x.Values)
	p.give(&s)
	return true
}
