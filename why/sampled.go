package why

import (
	"math"
	"sort"

	"github.com/callreel/callreel/reel"
)

// A call that has millions of others in it isn't read as a whole: pieces of it are, evenly by time, and stand for what is around them. What
// takes longer than the way from one to the next is hit in any case.
const (
	// wholeEvents is up to how many events of the call that is explained are read, peersEvents of all that it is held against together.
	wholeEvents = 1 << 23
	peersEvents = 1 << 23
	// leastPieces is in how many places a call is read at least.
	leastPieces = 8
	// leastPeers is how few calls it is held against at least, so as to read less.
	leastPeers = 12
)

// piece is a stretch of a thread that can be read by itself.
type piece struct {
	chunk, chunks int
	start, end    uint64 // ticks; end is where the next one starts
	at            int    // its index, for its state
}

// pieces are where a thread can be read from.
type pieces struct {
	list  []piece
	state func(at int) (reel.PairerState, bool)
}

// piecesOf finds them, by the index or by the marks of the first reading; nil if there are none.
func (x *explainer) piecesOf(thread uint32) *pieces {
	if p, ok := x.pieces[thread]; ok {
		return p
	}
	p := &pieces{}
	chunks := x.f.Chunks(thread)
	if m := x.found.marks[thread]; m != nil {
		for i, at := range m.at {
			to := len(chunks)
			if i+1 < len(m.at) {
				to = m.at[i+1]
			}
			p.list = append(p.list, piece{chunk: at, chunks: to - at, start: chunks[at].First, at: i})
		}
		p.state = func(at int) (reel.PairerState, bool) { return m.state[at], true }
	} else if tl := x.timeline(); tl != nil {
		for _, l := range tl.Lanes() {
			if l.Thread != thread || l.Goroutine != 0 {
				continue
			}
			for i, s := range tl.Pieces(l.ID) {
				p.list = append(p.list, piece{chunk: s.Chunk, chunks: s.Chunks, start: s.Start, at: i})
			}
			p.state = func(at int) (reel.PairerState, bool) { return tl.PieceState(l.ID, at) }
		}
	}
	for i := range p.list {
		p.list[i].end = math.MaxUint64
		if i+1 < len(p.list) {
			p.list[i].end = p.list[i+1].start
		}
	}
	if x.pieces == nil {
		x.pieces = map[uint32]*pieces{}
	}
	x.pieces[thread] = p
	return p
}

// eventsIn is about how many events a thread has in a stretch of time.
func eventsIn(chunks []reel.Chunk, from, to uint64) (events float64) {
	at := sort.Search(len(chunks), func(i int) bool { return chunks[i].Last >= from })
	for ; at < len(chunks) && chunks[at].First <= to; at++ {
		c := &chunks[at]
		part := 1.0
		if c.Last > c.First {
			part = float64(min(c.Last, to)-min(max(c.First, from), min(c.Last, to))) / float64(c.Last-c.First)
		}
		events += part * float64(min(c.Events, c.Bytes))
	}
	return events
}

// sampling says how calls with too many events are read.
type sampling struct {
	events float64 // of a call, at most
	pieces map[uint32]*pieces
}

// sampling is for calls that are to have at most so many events together; nil if none of them has too many.
func (x *explainer) sampling(list []ref, events float64) *sampling {
	if len(list) == 0 || x.f.Header().Goroutines || x.f.Header().Clock.Mode != reel.ClockFull {
		return nil
	}
	s := &sampling{events: events / float64(len(list)), pieces: map[uint32]*pieces{}}
	many := false
	for i := range list {
		r := &list[i]
		if eventsIn(x.f.Chunks(r.thread), r.start, r.end) > 2*s.events {
			many = true
			s.pieces[r.thread] = x.piecesOf(r.thread)
		}
	}
	if !many {
		return nil
	}
	return s
}

// fewer leaves peers out, evenly, as long as all of them have too many events, and enough are left.
func (x *explainer) fewer(list []ref) []ref {
	events := 0.0
	for i := range list {
		events += eventsIn(x.f.Chunks(list[i].thread), list[i].start, list[i].end)
	}
	if events <= peersEvents || x.f.Header().Goroutines {
		return list
	}
	return evenly(list, max(leastPeers, int(float64(len(list))*peersEvents/events)))
}

// hits are the pieces of a call that are read, and how often each is hit by moments that are even in time.
type hit struct {
	piece
	times    int
	from, to uint64 // what of it is the call's
}

// hits chooses the pieces of a call, nil if it isn't too large.
func (s *sampling) hits(chunks []reel.Chunk, r *ref) (list []hit) {
	p := s.pieces[r.thread]
	all := eventsIn(chunks, r.start, r.end)
	if p == nil || all <= 2*s.events {
		return nil
	}
	first := sort.Search(len(p.list), func(i int) bool { return p.list[i].end > r.start })
	last := sort.Search(len(p.list), func(i int) bool { return p.list[i].start >= r.end })
	n := last - first
	points := max(leastPieces, int(float64(n)*s.events/all))
	if n <= points {
		return nil
	}
	at := first
	for k := range points {
		moment := r.start + uint64((float64(k)+0.5)*float64(r.duration())/float64(points))
		for at < last-1 && p.list[at].end <= moment {
			at++
		}
		if n := len(list); n > 0 && list[n-1].at == p.list[at].at {
			list[n-1].times++
			continue
		}
		h := hit{piece: p.list[at], times: 1}
		h.from, h.to = max(h.start, r.start), min(h.end, r.end)
		list = append(list, h)
	}
	return list
}

// sampledTree makes the tree of a call out of pieces of it; nil if it isn't too large, or can't be.
func (d *chunkDecoder) sampledTree(r *ref, limit replayed) *tree {
	if limit.sampling == nil {
		return nil
	}
	hits := limit.sampling.hits(d.f.Chunks(r.thread), r)
	if len(hits) == 0 {
		return nil
	}
	points := 0
	for _, h := range hits {
		points += h.times
	}
	g := newGathered(r, limit.limit)
	read := uint64(0)
	for i := range hits {
		h := &hits[i]
		if h.from >= h.to {
			continue
		}
		st, ok := limit.sampling.pieces[r.thread].state(h.at)
		if !ok {
			return nil
		}
		if d.piece(g, r, h, st, limit, float64(h.times)*float64(r.duration())/float64(points)/float64(h.to-h.from)) {
			read += h.to - h.from
		}
	}
	if read == 0 {
		return nil
	}
	t := g.tree(d.f, r)
	t.part = float64(read) / float64(r.duration())
	return t
}

// piece reads a piece of a call and adds it, weight times. It says whether the call is in it.
func (d *chunkDecoder) piece(g *gathered, r *ref, h *hit, st reel.PairerState, limit replayed, weight float64) bool {
	b := &builder{t: newTree(r.fn, limit.limit), thread: r.thread, from: h.from, now: h.from, last: h.to}
	b.t.nodes, b.t.edges = append(d.grown.nodes[:0], b.t.nodes...), d.grown.edges
	b.t.edges.reset()
	defer func() { d.grown.nodes, d.grown.edges = b.t.nodes[:0], b.t.edges }()
	if d.f.HasStates() {
		b.clock = newStateClock(d.f, r.thread, h.from)
		if limit.faults {
			b.readFaults(d.f, &ref{thread: r.thread, start: h.from, end: h.to})
		}
	}
	b.long = func(node int32, start uint64) { g.long(b.t, node, start) }
	var p reel.Pairer
	d.f.ReadyPairer(&p, r.thread)
	chunks := d.f.Chunks(r.thread)
	begun := b.goOn(&st, r)
	if begun {
		p.SetTime(h.start)
		p.SetState(st)
	} else {
		p.SetTime(r.start)
	}
	b.attach(&p)
	for at := h.chunk; at < h.chunk+h.chunks && at < len(chunks) && !b.done; at++ {
		events, err := d.chunk(r.thread, chunks, at)
		if at > h.chunk && chunks[at].Seq != chunks[at-1].Seq+1 {
			p.Lost()
		}
		if !begun {
			i := findEntry(d.f, events, r)
			if i < 0 {
				continue
			}
			events, begun = events[i:], true
		}
		b.push(&p, events)
		if err != nil {
			p.Lost()
		}
	}
	if !begun {
		return false
	}
	b.end()
	for _, open := range b.open {
		for _, o := range open {
			if o.node != 0 {
				b.long(o.node, o.start)
				if o.start >= h.from {
					b.t.nodes[o.node].calls--
				}
			}
		}
	}
	g.add(b.t, weight)
	return true
}

// goOn has the builder begin in the midst of its call, by what is open there. It says whether the call is.
func (b *builder) goOn(st *reel.PairerState, r *ref) bool {
	for s := range st.Stacks {
		for depth, o := range st.Stacks[s].Open {
			if o.Func != r.fn || o.Start != r.start {
				continue
			}
			b.began = true
			b.begin(&reel.Call{Func: o.Func, Stack: s, Depth: depth, Start: o.Start})
			b.goDown(st, s, depth+1)
			if st.Current != s && st.Current < len(st.Stacks) {
				b.goDown(st, st.Current, 0)
			}
			return true
		}
	}
	return false
}

func (b *builder) goDown(st *reel.PairerState, stack, depth int) {
	for open := st.Stacks[stack].Open; depth < len(open); depth++ {
		b.entered(&reel.Call{Func: open[depth].Func, Stack: stack, Depth: depth, Start: open[depth].Start})
		b.t.nodes[b.cur].calls--
	}
}
