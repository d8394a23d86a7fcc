package why

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/callreel/callreel/reel"
)

// ref is a call of the reel.
type ref struct {
	start, end uint64 // ticks
	goroutine  uint64
	fn         uint32
	thread     uint32 // key; of a goroutine's call that of the thread it was entered on
	sp         uint32
	flags      reel.CallFlags
}

func (r *ref) duration() uint64 { return r.end - r.start }
func (r *ref) id() CallID       { return CallID{Thread: r.thread, Start: r.start, Function: r.fn} }

// whole says that both ends of the call are known and nothing of it is lost.
func (r *ref) whole() bool { return r.flags&^reel.Implicit == 0 }

// longest keeps the longest calls, the longest first.
type longest struct {
	most int
	list []ref
}

func byDuration(a, b ref) int {
	return cmp.Or(cmp.Compare(b.duration(), a.duration()), cmp.Compare(a.start, b.start), cmp.Compare(a.thread, b.thread))
}

func (l *longest) add(r ref) {
	n := len(l.list)
	if n == l.most {
		if n == 0 || byDuration(l.list[n-1], r) <= 0 {
			return
		}
		l.list = l.list[:n-1]
	}
	at, _ := slices.BinarySearchFunc(l.list, r, byDuration)
	l.list = slices.Insert(l.list, at, r)
}

// sampler keeps calls evenly: one in so many.
type sampler struct {
	most  int
	every uint64
	seen  uint64
	list  []ref
}

func (s *sampler) add(r ref) {
	if s.every == 0 {
		s.every = 1
	}
	if s.seen%s.every == 0 {
		if len(s.list) == s.most {
			s.thin()
		}
		if s.seen%s.every == 0 {
			s.list = append(s.list, r)
		}
	}
	s.seen++
}

// thin leaves every other one out.
func (s *sampler) thin() {
	kept := s.list[:0]
	for i := 0; i < len(s.list); i += 2 {
		kept = append(kept, s.list[i])
	}
	s.list = kept
	s.every *= 2
}

// merge takes in what another has kept.
func (s *sampler) merge(o *sampler) {
	s.every, o.every = max(s.every, 1), max(o.every, 1)
	for s.every < o.every {
		s.thin()
	}
	for o.every < s.every {
		o.thin()
	}
	s.list = append(s.list, o.list...)
	s.seen += o.seen
	for len(s.list) > s.most {
		s.thin()
	}
}

// population is what is known of the calls of one function. Calls within another call of the same function don't count.
type population struct {
	fn     uint32
	all    sampler // whole calls
	top    longest // whatever is known of their ends
	over   uint64  // calls longer than was asked for
	asked  *ref    // that with the ID asked for
	broken uint64  // calls of which something is lost, or that were open at the end
}

const (
	maxSample    = 1 << 16 // calls of a function
	maxSamples   = 1 << 18 // of all functions
	keptLongest  = 256
	maxFunctions = 1 << 10 // that may be asked for at once
)

// collector gathers the calls of functions.
type collector struct {
	over  uint64 // ticks
	call  *CallID
	found map[uint32]*population
	open  map[openKey]uint32 // calls that are open, by stack and function
	want  idSet
	marks map[uint32]*marks // by thread
	buf   []reel.Event
}

type openKey struct {
	of    runKey
	stack int
	fn    uint32
}

// idSet is a set of functions' IDs.
type idSet struct {
	low  []bool
	high map[uint32]bool
}

func newIDSet(ids []uint32) idSet {
	const most = 1 << 22
	s := idSet{high: map[uint32]bool{}}
	for _, id := range ids {
		if id >= most {
			s.high[id] = true
			continue
		}
		if n := int(id) + 1 - len(s.low); n > 0 {
			s.low = append(s.low, make([]bool, n)...)
		}
		s.low[id] = true
	}
	return s
}

func (s *idSet) has(id uint32) bool {
	if int(id) < len(s.low) {
		return s.low[id]
	}
	return len(s.high) > 0 && s.high[id]
}

func newCollector(fns []uint32, over uint64, call *CallID) *collector {
	c := &collector{over: over, call: call, found: map[uint32]*population{}, open: map[openKey]uint32{}, want: newIDSet(fns), marks: map[uint32]*marks{}}
	most := max(keptLongest, min(maxSample, maxSamples/max(1, len(fns))))
	for _, fn := range fns {
		c.found[fn] = &population{fn: fn, all: sampler{most: most}, top: longest{most: keptLongest}}
	}
	return c
}

// leave takes the end of a call.
func (c *collector) leave(k openKey, r ref) {
	switch n := c.open[k]; {
	case n > 1:
		c.open[k] = n - 1
		if c.call != nil && r.id() == *c.call { // asked for though it is within another
			c.found[r.fn].asked = &r
		}
		return
	case n == 1:
		delete(c.open, k)
	}
	c.take(r)
}

func (c *collector) take(r ref) {
	p := c.found[r.fn]
	if c.call != nil && r.id() == *c.call {
		x := r
		p.asked = &x
	}
	if r.whole() {
		p.all.add(r)
	} else {
		p.broken++
	}
	if c.over > 0 && r.duration() > c.over {
		p.over++
	}
	p.top.add(r)
}

// merge takes in what another has gathered.
func (c *collector) merge(o *collector) {
	maps.Copy(c.marks, o.marks)
	for fn, q := range o.found {
		p := c.found[fn]
		p.all.merge(&q.all)
		for _, r := range q.top.list {
			p.top.add(r)
		}
		p.over += q.over
		p.broken += q.broken
		if q.asked != nil {
			p.asked = q.asked
		}
	}
}

// collect reads all events of the reel for the calls of functions.
func collect(ctx context.Context, f *reel.File, fns []uint32, over uint64, call *CallID, workers int) (*collector, error) {
	if f.Header().Goroutines {
		c := newCollector(fns, over, call)
		c.goroutines(ctx, f)
		return c, ctx.Err()
	}
	threads := f.Threads()
	slices.SortStableFunc(threads, func(a, b reel.Thread) int { return cmp.Compare(weight(f, b.Key), weight(f, a.Key)) })
	next := make(chan reel.Thread)
	parts := make([]*collector, max(1, min(workers, len(threads))))
	var wg sync.WaitGroup
	for i := range parts {
		c := newCollector(fns, over, call)
		parts[i] = c
		wg.Go(func() {
			for t := range next {
				c.thread(ctx, f, &t)
			}
		})
	}
	for _, t := range threads {
		next <- t
	}
	close(next)
	wg.Wait()
	for _, o := range parts[1:] {
		parts[0].merge(o)
	}
	for _, p := range parts[0].found { // whichever worker had which thread
		slices.SortFunc(p.all.list, func(a, b ref) int { return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start)) })
	}
	return parts[0], ctx.Err()
}

// weight is about how many events a thread has.
func weight(f *reel.File, thread uint32) (n uint64) {
	for _, c := range f.Chunks(thread) {
		n += uint64(min(c.Events, c.Bytes))
	}
	return n
}

// thread reads a thread.
func (c *collector) thread(ctx context.Context, f *reel.File, t *reel.Thread) {
	var p reel.Pairer
	c.attach(&p, runKey{thread: t.Key}, func() uint32 { return t.Key })
	f.ReadyPairer(&p, t.Key)
	p.SetTime(f.FirstTick())
	marks := &marks{}
	next := uint32(0)
	for i, chunk := range f.Chunks(t.Key) {
		if ctx.Err() != nil {
			return
		}
		if chunk.Seq != next {
			p.Lost()
		}
		next = chunk.Seq + 1
		marks.note(i, &p)
		if len(c.buf) == 0 {
			c.buf = make([]reel.Event, blockEvents)
		}
		err := f.DecodeBlocks(chunk, c.buf, func(events []reel.Event) []reel.Event {
			p.Push(events)
			return c.buf
		})
		if err != nil {
			p.Lost()
		}
	}
	p.Finish(f.EndOf(t))
	clear(c.open)
	c.marks[t.Key] = marks
}

// blockEvents is how many events are decoded at a time: what fits a processor's cache.
const blockEvents = 1 << 12

// marks are where the pairing of a thread was at the beginning of chunks, so that it can be begun there again.
type marks struct {
	at    []int // indices of chunks
	state []reel.PairerState
	open  int // calls in the states
	every int // chunk is noted, the others aren't; 0 is 1
}

// maxMarked bounds the open calls in the marks of a thread.
const maxMarked = 1 << 16

// note notes where a Pairer is before a chunk. Where there is no room for all, it is every other chunk, and so on.
func (m *marks) note(chunk int, p *reel.Pairer) {
	m.every = max(m.every, 1)
	if chunk%m.every != 0 {
		return
	}
	n := p.Open() + 8
	for m.open+n > maxMarked && len(m.at) > 1 {
		m.thin()
	}
	if m.open+n <= maxMarked && chunk%m.every == 0 {
		m.open += n
		m.at, m.state = append(m.at, chunk), append(m.state, p.State(nil))
	}
}

func (m *marks) thin() {
	m.every *= 2
	k := 0
	m.open = 0
	for i, at := range m.at {
		if at%m.every != 0 {
			continue
		}
		m.at[k], m.state[k] = at, m.state[i]
		k++
		m.open += 8
		for _, s := range m.state[i].Stacks {
			m.open += len(s.Open)
		}
	}
	clear(m.state[k:])
	m.at, m.state = m.at[:k], m.state[:k]
}

// before is the last mark at a chunk or before it.
func (m *marks) before(chunk int) (at int, st *reel.PairerState) {
	i, found := slices.BinarySearch(m.at, chunk)
	if !found {
		i--
	}
	if i < 0 {
		return 0, nil
	}
	return m.at[i], &m.state[i]
}

// attach has a Pairer tell of the calls of a goroutine or a thread. thread is the key of the thread that it is on.
func (c *collector) attach(p *reel.Pairer, of runKey, thread func() uint32) {
	entered := map[openKey][]uint32{} // threads, of goroutines' calls
	p.OnEntry = func(x *reel.Call) {
		if c.want.has(x.Func) {
			k := openKey{of, x.Stack, x.Func}
			c.open[k]++
			if of.goroutine != 0 {
				entered[k] = append(entered[k], thread())
			}
		}
	}
	p.OnCall = func(x *reel.Call) {
		if !c.want.has(x.Func) {
			return
		}
		k := openKey{of, x.Stack, x.Func}
		r := ref{start: x.Start, end: x.End, goroutine: of.goroutine, fn: x.Func, thread: of.thread, sp: x.SP, flags: x.Flags}
		if on := entered[k]; len(on) > 0 {
			r.thread = on[len(on)-1]
			entered[k] = on[:len(on)-1]
		}
		c.leave(k, r)
	}
}

// longest are the durations of the longest calls, in ticks, the longest first.
func (p *population) longest() (list []float64) {
	for i := range p.top.list {
		list = append(list, float64(p.top.list[i].duration()))
	}
	return list
}
