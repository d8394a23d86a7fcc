package timeline

import (
	"context"
	"sort"

	"github.com/callreel/callreel/reel"
)

// Goroutines go from thread to thread, so that a goroutine's events are in the
// chunks of several threads. They are read by batches: so many events of all
// threads, in the order of reel.File.ReadGoroutines. A segment of a goroutine is
// what of it is in one batch.
type batch struct {
	marks  []reel.RunMark // of all threads, at its start
	events int
}

// batchEvents is how many events a batch has at least: more where there are
// many threads, whose chunks must all be decoded for it.
func batchEvents(threads, segment int) int { return max(segment, threads<<9) }

// smallGo is smallSegment of goroutines: for a segment of one that has no levels a
// whole batch is decoded.
const smallGo = 64

// laneKey tells goroutines, and threads' own stacks, apart.
type laneKey struct {
	goroutine uint64
	thread    uint32 // for goroutine 0
}

func keyOfRun(goroutine uint64, thread uint32) laneKey {
	if goroutine != 0 {
		thread = 0
	}
	return laneKey{goroutine, thread}
}

// goroutineBuilder indexes the lanes of a reel of goroutines.
type goroutineBuilder struct {
	*builder
	threads    map[uint32]reel.Thread
	lanes      map[laneKey]*laneBuilder
	open       map[*laneBuilder]bool // lanes that have calls open, or are in the batch
	touched    []*laneBuilder        // lanes that are in the batch
	free       []*pairing
	spare      [][]call // room for the calls of lanes in a batch
	spareCalls int      // of spare, in calls
	z          *summarizer
}

// maxSpare bounds the room for calls that is kept from batch to batch: what lanes had at their busiest would be far more than there is in
// any one.
const maxSpare = 1 << 18

func (b *builder) buildGoroutines(ctx context.Context, _ int) error {
	s, f := b.s, b.s.f
	g := goroutineBuilder{
		builder: b, threads: map[uint32]reel.Thread{}, lanes: map[laneKey]*laneBuilder{}, open: map[*laneBuilder]bool{},
		z: &summarizer{small: min(b.opt.small, smallGo), strict: true, share: b.share(), counts: make([]uint32, f.FunctionCount()+1)},
	}
	s.laneOf = map[laneKey]*lane{}
	threads := f.Threads()
	for _, th := range threads {
		g.threads[th.Key] = th
	}
	if b.before != nil { // lanes keep their numbers
		for _, l := range b.before.lanes {
			g.lane(keyOfRun(l.Goroutine, l.Thread), l.Thread)
		}
	}
	for _, th := range threads {
		g.lane(laneKey{thread: th.Key}, th.Key)
	}
	err := eachBatch(ctx, f, batchEvents(len(threads), b.opt.segment), func(w *readBatch) {
		at := 0
		for _, r := range w.runs {
			g.take(r.goroutine, r.thread, w.list[at:at+r.events], r.lost)
			at += r.events
		}
		b.count(w.events)
		g.endBatch()
		s.batches = append(s.batches, w.batch)
	})
	if err != nil {
		return err
	}
	for _, l := range s.lanes {
		lb := g.lanes[keyOfRun(l.Goroutine, l.Thread)]
		if lb.p == nil {
			g.attach(lb, reel.PairerState{Now: lb.lastTick})
		}
		lb.endTick = f.LastTick()
		lb.finish()
		g.release(lb)
	}
	return nil
}

// lane returns a lane's builder.
func (g *goroutineBuilder) lane(k laneKey, thread uint32) *laneBuilder {
	lb := g.lanes[k]
	if lb != nil && lb.l.Thread == thread {
		return lb
	}
	if lb == nil {
		lb = &laneBuilder{b: g.builder, l: &lane{}, z: g.z, done: g.s.done}
		lb.l.Lane = Lane{ID: uint32(len(g.s.lanes)), Goroutine: k.goroutine, Thread: thread}
		if k.goroutine == 0 {
			lb.drops = g.drops[thread]
			lb.l.Dropped = dropped(lb.drops)
		}
		g.lanes[k] = lb
		g.s.lanes = append(g.s.lanes, lb.l)
		g.s.laneOf[k] = lb.l
	}
	th := g.threads[thread]
	lb.l.Thread, lb.l.TID, lb.l.Process, lb.l.Name = thread, th.TID, th.Process, th.Name
	return lb
}

func dropped(drops []reel.Drop) (events uint64) {
	for _, d := range drops {
		events += d.Entries + d.Exits
	}
	return events
}

// attach gives a lane a pairing.
func (g *goroutineBuilder) attach(lb *laneBuilder, st reel.PairerState) {
	if n := len(g.free); n > 0 {
		lb.p, g.free = g.free[n-1], g.free[:n-1]
	} else {
		lb.p = newPairing(&g.s.clock)
	}
	lb.p.ended = lb.spanEnded
	lb.p.begin(st, nil, st.Now)
	lb.p.pairer.SetTops(nil)
}

// release takes the pairing of a lane without open calls back.
func (g *goroutineBuilder) release(lb *laneBuilder) {
	lb.calls += lb.p.pairer.Calls
	lb.lastTick = lb.p.last
	g.free = append(g.free, lb.p)
	lb.p = nil
	delete(g.open, lb)
}

// take takes the next events of a goroutine.
func (g *goroutineBuilder) take(id uint64, thread uint32, events []reel.Event, lost bool) {
	lb := g.lane(keyOfRun(id, thread), thread)
	if lost {
		for o := range g.open {
			o.p.pairer.Lost()
		}
		own := g.lane(laneKey{thread: thread}, thread)
		own.gap(own.lastTick, max(own.lastTick, events[0].Time), 0)
	}
	if lb.p == nil {
		g.attach(lb, reel.PairerState{Now: max(lb.lastTick, events[0].Time)})
	}
	if !lb.inBatch {
		g.open[lb], lb.inBatch = true, true
		lb.beginSegment(lb.p.pairer.State(lb.p.known()))
		g.lendBuffer(lb.p)
		lb.seg.chunk = uint32(len(g.s.batches))
		g.touched = append(g.touched, lb)
	}
	lb.p.pushRun(events, g.s.f.Ends(events))
	if lb.seg.events == 0 && events[0].Time != 0 {
		lb.seg.start = g.s.clock.rel(max(lb.lastTick, events[0].Time))
	}
	if lb.taken == 0 {
		lb.l.Start = g.s.clock.toNS(lb.seg.start)
	}
	lb.taken += uint64(len(events))
	lb.seg.events += uint32(len(events))
	lb.seg.end = max(lb.seg.start, g.s.clock.rel(lb.p.last))
	lb.bytes += len(events) * 3 / 2
	lb.lastTick = lb.p.last
}

// pushRun takes the events of a goroutine that it made at one go; ends says that
// they are its last.
func (p *pairing) pushRun(events []reel.Event, ends bool) {
	p.push(events)
	p.ranOut(ends)
}

// ranOut takes the end of such a go.
func (p *pairing) ranOut(ends bool) {
	if ends {
		p.pairer.Abandon()
	}
	if p.pairer.Open() == 0 { // as new, wherever its stack will be
		p.pairer.SetState(reel.PairerState{Now: p.last})
		p.open = p.open[:0]
	}
}

// lendBuffer gives a pairing room for its calls, if there is some, and takeBuffer takes it back, as far as it is to be kept.
func (g *goroutineBuilder) lendBuffer(p *pairing) {
	if n := len(g.spare); n > 0 && p.calls == nil {
		p.calls, g.spare = g.spare[n-1], g.spare[:n-1]
		g.spareCalls -= cap(p.calls)
	}
}

func (g *goroutineBuilder) takeBuffer(p *pairing) {
	if n := cap(p.calls); n > 0 && g.spareCalls+n <= maxSpare {
		g.spare = append(g.spare, p.calls[:0])
		g.spareCalls += n
	}
	p.calls = nil
}

// endBatch ends the segments of all lanes that were in the batch.
func (g *goroutineBuilder) endBatch() {
	for _, lb := range g.touched {
		lb.inBatch = false
		lb.endSegment()
		g.takeBuffer(lb.p)
		if lb.p.pairer.Open() == 0 {
			g.release(lb)
		}
	}
	g.touched = g.touched[:0]
}

// loadBatch returns the calls of a segment of a goroutine, decoding its batch
// if need be.
func (s *snapshot) loadBatch(l *lane, seg *segment) *decoded {
	key := s.batchKey(seg.chunk)
	byLane := s.cache.get(key, func() (any, int64) {
		byLane := map[uint32]*decoded{}
		bytes := int64(0)
		ws := s.readBatch(seg.chunk, nil, nil)
		for id, w := range ws {
			d := &decoded{}
			d.calls, d.rows = byRow(w.p.calls, nil)
			byLane[id] = d
			bytes += d.bytes()
			s.workers.Put(w)
		}
		return byLane, bytes
	}).(map[uint32]*decoded)
	if d := byLane[l.ID]; d != nil {
		return d
	}
	return &decoded{}
}

// batchKey is the key of a batch in the cache: batches' are odd ones from the top.
func (s *snapshot) batchKey(i uint32) uint64 { return ^(uint64(s.generation)<<32 | uint64(i)) }

// readBatch pairs the events of a batch: of all lanes, or of one only. ended is
// then told of its spans.
func (s *snapshot) readBatch(i uint32, only *lane, ended func(w *worker, index int32)) map[uint32]*worker {
	ws := map[uint32]*worker{}
	if int(i) >= len(s.batches) {
		return ws
	}
	batch := &s.batches[i]
	events := 0
	s.f.Goroutines(batch.marks).Read(func(id uint64, thread uint32, list []reel.Event, lost bool) bool {
		events += len(list)
		l := s.laneOf[keyOfRun(id, thread)]
		if lost {
			for _, w := range ws {
				w.p.pairer.Lost()
			}
		}
		if l == nil || only != nil && l != only {
			return events < batch.events
		}
		w := ws[l.ID]
		if w == nil {
			w = s.takeWorker()
			k := sort.Search(len(l.segments), func(k int) bool { return l.segments[k].chunk >= i })
			if k == len(l.segments) || l.segments[k].chunk != i {
				s.workers.Put(w)
				return events < batch.events
			}
			seg := &l.segments[k]
			w.p.resume(l, seg)
			if ended != nil {
				w.p.ended = func(index int32, _ *reel.Call) { ended(w, index) }
			}
			ws[l.ID] = w
		}
		w.p.pushRun(list, s.f.Ends(list))
		return events < batch.events
	})
	return ws
}

// batch gives the calls of a segment of a goroutine.
func (r *replay) batch(i int) {
	given := 0
	give := func(w *worker) {
		for ; given < len(w.p.calls); given++ {
			r.give(&w.p.calls[given])
		}
	}
	ws := r.s.readBatch(r.l.segments[i].chunk, r.l, func(w *worker, index int32) {
		give(w)
		c := r.l.spans[index].call()
		r.give(&c)
	})
	for _, w := range ws {
		give(w)
		r.s.workers.Put(w)
	}
}
