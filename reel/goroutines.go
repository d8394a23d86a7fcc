package reel

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// ReadGoroutines decodes the events of a reel whose header says Goroutines, goroutine by goroutine: each call of yield is given events
// that one goroutine, or with 0 for its ID the stack of the thread with that key, made one after the other, and goroutines' events come
// in the order in which they were made whatever the threads they ran on. Events that name goroutines are left out. lost says that
// events of the thread are missing before these: whose they were isn't known. The events are valid during the call only. It goes on
// until yield returns false.
func (f *File) ReadGoroutines(yield func(goroutine uint64, thread uint32, events []Event, lost bool) bool) {
	var h runHeap
	for i := range f.threads {
		c := &runCursor{f: f, thread: f.threads[i].Key, chunks: f.threads[i].chunks, known: true}
		if c.fill() {
			c.start = c.events[0].Time
			h = append(h, c)
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		c := h[0]
		more, ok := c.run(h.second(), yield)
		switch {
		case !ok:
			return
		case more:
			heap.Fix(&h, 0)
		default:
			heap.Pop(&h)
		}
	}
}

// Ends says whether the events of a goroutine are its last: it is in the function by which goroutines end, which never returns.
func (f *File) Ends(events []Event) bool {
	e := &events[len(events)-1]
	return f.goexit != 0 && e.Word == f.goexit<<1
}

// findGoexit finds that function.
func (f *File) findGoexit() uint32 {
	for i := range f.functions.blocks {
		b := &f.functions.blocks[i]
		for k := range b.list {
			if b.list[k].Name == "runtime.goexit1" {
				return b.first + uint32(k)
			}
		}
	}
	return 0
}

// runCursor reads the events of one thread, run by run of a goroutine.
type runCursor struct {
	f         *File
	thread    uint32
	chunks    []Chunk // still to be decoded
	buf       []Event
	events    []Event // of buf, still to be read
	next      uint32  // number of the chunk that is due
	lost      bool    // events are missing before these
	goroutine uint64
	known     bool // goroutine is: no event that names one can be missing
	start     uint64
}

// fill decodes the next chunk when there is nothing left of the last.
func (c *runCursor) fill() bool {
	for len(c.events) == 0 {
		if len(c.chunks) == 0 {
			return false
		}
		chunk := c.chunks[0]
		c.chunks = c.chunks[1:]
		damaged := chunk.Seq != c.next
		c.next = chunk.Seq + 1
		var err error
		c.buf, err = c.f.Decode(chunk, c.buf)
		c.events = c.buf
		if damaged {
			c.lost, c.known = true, false
		}
		if err != nil {
			c.next-- // what follows it comes after a loss, too
		}
	}
	return true
}

// run passes on the events up to the next that names a goroutine, but none that is later than limit: a goroutine may have been on another
// thread in between, and have come back to this one with nobody else's events before its own. more says that there are others
// behind, at c.start.
func (c *runCursor) run(limit uint64, yield func(goroutine uint64, thread uint32, events []Event, lost bool) bool) (more, ok bool) {
	for c.fill() {
		n := 0
		for n < len(c.events) && c.events[n].Word&switchMask != SwitchWord && c.events[n].Time <= limit {
			n++
		}
		if n > 0 && c.known {
			if !yield(c.goroutine, c.thread, c.events[:n], c.lost) {
				return false, false
			}
			c.lost = false
		}
		c.events = c.events[n:]
		if len(c.events) > 0 && c.events[0].Word&switchMask != SwitchWord {
			c.start = c.events[0].Time
			return true, true
		}
		if len(c.events) > 0 {
			c.goroutine, _ = c.events[0].Goroutine()
			c.known, c.start = true, c.events[0].Time
			c.events = c.events[1:]
			return true, true
		}
	}
	return false, true
}

// runHeap has the thread first whose next run began first.
type runHeap []*runCursor

// second is when the next run of the other threads begins.
func (h runHeap) second() uint64 {
	at := uint64(math.MaxUint64)
	for i := 1; i < len(h) && i < 3; i++ {
		at = min(at, h[i].start)
	}
	return at
}

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return h[i].start < h[j].start }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*runCursor)) }

func (h *runHeap) Pop() any {
	old := *h
	c := old[len(old)-1]
	*h = old[:len(old)-1]
	return c
}

// GoroutineSummary sums up one goroutine.
type GoroutineSummary struct {
	// ID is the goroutine's, as the Go runtime gives it; 0 is what ran on a thread's own stack.
	ID uint64
	// Thread is the key of the thread for 0, else that of the last one it ran on.
	Thread uint32
	// Runs is how often it came to run on another thread, or after another goroutine.
	Runs uint64
	// Calls counts entries, UnmatchedExits exits without an entry.
	Calls          uint64
	UnmatchedExits uint64
}

// goroutineKey tells goroutines, and threads' own stacks, apart.
type goroutineKey struct {
	id     uint64
	thread uint32 // for 0
}

// goroutineTally pairs the events of goroutines.
type goroutineTally struct {
	*tally
	open map[goroutineKey]*Pairer // of those that have open calls
	free []*Pairer
	sums map[goroutineKey]*GoroutineSummary
	last map[uint32]goroutineKey // by thread
}

// tallyGoroutines adds all events of the reel to the tally, and to the summary what is of threads and of goroutines.
func tallyGoroutines(f *File, s *Summary) *tally {
	t := goroutineTally{tally: newTally(f), open: map[goroutineKey]*Pairer{}, sums: map[goroutineKey]*GoroutineSummary{}, last: map[uint32]goroutineKey{}}
	for i := range f.threads {
		s.Threads[i].Thread = f.threads[i].Thread
	}
	f.ReadGoroutines(func(id uint64, thread uint32, events []Event, lost bool) bool {
		t.add(id, thread, events, lost, &s.Threads[f.byKey[thread]])
		return true
	})
	for key, p := range t.open {
		p.Finish(f.LastTick())
		t.close(key, p)
	}
	for _, g := range t.sums {
		s.Goroutines = append(s.Goroutines, *g)
	}
	slices.SortFunc(s.Goroutines, func(a, b GoroutineSummary) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Thread, b.Thread))
	})
	return t.tally
}

func (t *goroutineTally) add(id uint64, thread uint32, events []Event, lost bool, of *ThreadSummary) {
	key := goroutineKey{id: id}
	if id == 0 {
		key.thread = thread
	}
	p, sum := t.open[key], t.sums[key]
	if p == nil {
		p = t.pairerFor(events[0].Time)
		t.open[key] = p
	}
	if sum == nil {
		sum = &GoroutineSummary{ID: id}
		t.sums[key] = sum
	}
	if lost { // those of whom events are missing aren't known
		for _, o := range t.open {
			o.Lost()
		}
	}
	sum.Thread = thread
	if t.last[thread] != key {
		t.last[thread] = key
		sum.Runs++
	}
	calls, unmatched := p.Calls, p.Unmatched
	t.events += uint64(len(events))
	p.Push(events)
	calls, unmatched = p.Calls-calls, p.Unmatched-unmatched
	sum.Calls += calls
	sum.UnmatchedExits += unmatched
	of.Calls += calls
	of.UnmatchedExits += unmatched
	if t.f.Ends(events) {
		p.Left()
	}
	if p.open == 0 {
		t.close(key, p)
	}
}

// pairerFor gives a Pairer for a goroutine without open calls.
func (t *goroutineTally) pairerFor(now uint64) *Pairer {
	if n := len(t.free); n > 0 {
		p := t.free[n-1]
		t.free = t.free[:n-1]
		p.SetTime(now)
		return p
	}
	p := &Pairer{}
	p.OnEntry = func(c *Call) { t.at(c.Func).calls++ }
	p.OnCall = func(c *Call) { t.end(t.at(c.Func), c, !p.within(c)) }
	p.SetTime(now)
	return p
}

// close takes a Pairer without open calls away from its goroutine.
func (t *goroutineTally) close(key goroutineKey, p *Pairer) {
	t.tooDeep += p.TooDeep
	p.TooDeep = 0
	p.Finish(0)
	delete(t.open, key)
	t.free = append(t.free, p)
}

// within says whether a call that has just ended was made in another of the same function.
func (p *Pairer) within(c *Call) bool {
	for _, o := range p.stacks[c.Stack].calls {
		if o.id == c.Func {
			return true
		}
	}
	return false
}
