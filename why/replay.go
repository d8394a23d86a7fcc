package why

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"sync"

	"github.com/callreel/callreel/reel"
)

// replayed says what trees are made of.
type replayed struct {
	limit  int  // of nodes
	faults bool // page faults are told to the paths
	*sampling
}

// replay makes the trees of calls: trees[i] is that of refs[i], nil if it couldn't be found again.
func replay(ctx context.Context, f *reel.File, refs []ref, limit replayed, workers int) []*tree {
	trees := make([]*tree, len(refs))
	if f.Header().Goroutines {
		replayGoroutines(ctx, f, refs, trees, limit)
		return trees
	}
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(refs[a].thread, refs[b].thread), cmp.Compare(refs[a].start, refs[b].start))
	})
	const together = 16
	next := make(chan []int)
	var wg sync.WaitGroup
	for range max(1, min(workers, len(refs))) {
		wg.Go(func() {
			d := chunkDecoder{f: f, at: -1}
			for part := range next {
				for _, i := range part {
					if ctx.Err() == nil {
						trees[i] = d.tree(&refs[i], limit)
					}
				}
			}
		})
	}
	for len(order) > 0 {
		n := 1
		for n < min(together, len(order)) && refs[order[n]].thread == refs[order[0]].thread {
			n++
		}
		next <- order[:n]
		order = order[n:]
	}
	close(next)
	wg.Wait()
	return trees
}

// chunkDecoder decodes chunks of threads, and keeps the last one.
type chunkDecoder struct {
	f      *reel.File
	thread uint32
	at     int // index of the chunk that is decoded
	events []reel.Event
	err    error
	grown  tree // what trees are made in
}

// chunk decodes a chunk of a thread.
func (d *chunkDecoder) chunk(thread uint32, chunks []reel.Chunk, at int) ([]reel.Event, error) {
	if d.thread != thread || d.at != at {
		d.thread, d.at = thread, at
		d.events, d.err = d.f.Decode(chunks[at], d.events)
	}
	return d.events, d.err
}

// tree makes the tree of a call of a thread.
func (d *chunkDecoder) tree(r *ref, limit replayed) *tree {
	chunks := d.f.Chunks(r.thread)
	at := 0
	if d.f.Header().Clock.Mode == reel.ClockFull {
		at = sort.Search(len(chunks), func(i int) bool { return chunks[i].Last >= r.start })
	}
	if t := d.sampledTree(r, limit); t != nil {
		return t
	}
	b := newBuilder(d.f, r, limit)
	b.t.nodes, b.t.edges = append(d.grown.nodes[:0], b.t.nodes...), d.grown.edges
	b.t.edges.reset()
	defer func() {
		d.grown.nodes, d.grown.edges = b.t.nodes, b.t.edges
		b.t.nodes, b.t.edges = slices.Clone(b.t.nodes), edges{}
	}()
	var p reel.Pairer
	d.f.ReadyPairer(&p, r.thread)
	p.SetTime(r.start)
	b.attach(&p)
	began := false
	for ; at < len(chunks) && !b.done; at++ {
		events, err := d.chunk(r.thread, chunks, at)
		if began && chunks[at].Seq != chunks[at-1].Seq+1 {
			p.Lost()
		}
		if !began {
			i := findEntry(d.f, events, r)
			if i < 0 {
				if len(events) > 0 && events[0].Time > r.start {
					return nil
				}
				continue
			}
			events, began = events[i:], true
		}
		b.push(&p, events)
		if err != nil {
			p.Lost()
		}
	}
	if !began {
		return nil
	}
	return b.end()
}

// findEntry is the index of the event by which a call begins, -1 if it isn't among these.
func findEntry(f *reel.File, events []reel.Event, r *ref) int {
	from := 0
	if f.Header().Clock.Mode == reel.ClockFull {
		// Times may go back by a little.
		const slack = 256
		from = max(0, sort.Search(len(events), func(i int) bool { return events[i].Time >= r.start })-slack)
	}
	now, best := uint64(0), -1
	for i := from; i < len(events); i++ {
		e := &events[i]
		now = max(now, e.Time)
		if now > r.start {
			break
		}
		if !e.IsExit() && e.ID() == r.fn && (e.SP == r.sp || r.sp == 0) {
			if best = i; now == r.start && f.Header().Clock.Mode == reel.ClockFull {
				break
			}
		}
	}
	return best
}

func newBuilder(f *reel.File, r *ref, limit replayed) *builder {
	b := &builder{t: newTree(r.fn, limit.limit), thread: r.thread, last: r.end, now: r.start}
	if f.HasStates() && r.goroutine == 0 {
		b.clock = newStateClock(f, r.thread, r.start)
		if limit.faults {
			b.readFaults(f, r)
		}
	}
	return b
}

// readFaults reads the page faults of the call.
func (b *builder) readFaults(f *reel.File, r *ref) {
	if s, ok := f.Scheduling(); !ok || !s.Faults {
		return
	}
	f.Faults(r.thread, r.start, r.end, func(x reel.Fault) bool {
		b.faults = append(b.faults, x)
		return len(b.faults) < maxFaults
	})
}

// maxFaults is how many page faults of a call are told to its paths.
const maxFaults = 1 << 18

// attach has a Pairer, which is given the call's entry first, tell the builder.
func (b *builder) attach(p *reel.Pairer) {
	p.OnEntry = func(c *reel.Call) {
		switch {
		case b.done:
		case !b.began:
			b.began = true
			b.begin(c)
		default:
			b.entered(c)
		}
	}
	p.OnCall = func(c *reel.Call) {
		if b.began && !b.done {
			b.left(c)
		}
	}
	p.OnSwitch = func(_, to int, tick uint64) {
		if b.began && !b.done {
			b.switched(to, tick)
		}
	}
}

// push gives the Pairer events, piece by piece: those behind the call's end are of no use.
func (b *builder) push(p *reel.Pairer, events []reel.Event) {
	const piece = 512
	for len(events) > 0 && !b.done {
		n := min(piece, len(events))
		if events[0].Time > b.last {
			b.done = true // it ended without an exit
			return
		}
		p.Push(events[:n])
		events = events[n:]
	}
}

// end returns the tree, whose times add up to the call's.
func (b *builder) end() *tree {
	if b.now < b.last {
		b.spend(b.last)
	}
	for _, open := range b.open { // of a call that never ended
		for _, o := range open {
			n := &b.t.nodes[o.node]
			if b.last-min(o.start, b.last) > n.to-n.from {
				n.from, n.to = o.start, b.last
			}
			if n.nested--; n.nested == 0 && b.from > 0 {
				n.whole += b.last - min(max(o.start, b.from), b.last)
			}
		}
	}
	return b.t
}
