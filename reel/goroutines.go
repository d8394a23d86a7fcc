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
	f.Goroutines(nil).Read(yield)
}

// GoroutineReader is [File.ReadGoroutines] in several steps.
type GoroutineReader struct {
	f *File
	h runHeap
}

// RunMark is where a GoroutineReader is in a thread; see [GoroutineReader.Marks].
type RunMark struct {
	Thread    uint32 // key
	Chunk     int    // index in Chunks of the chunk that is read next
	Skip      int    // how many of its events were read already
	Next      uint32 // number of the chunk that is due
	Goroutine uint64
	Known     bool   // Goroutine is
	Lost      bool   // events are missing before the next
	Start     uint64 // when the next run begins, in ticks
}

// Goroutines returns a reader that begins at the reel's start (marks nil), or where another one was. Marks that don't fit
// the reel are left out.
func (f *File) Goroutines(marks []RunMark) *GoroutineReader {
	r := &GoroutineReader{f: f}
	if marks == nil {
		for i := range f.threads {
			c := &runCursor{f: f, thread: f.threads[i].Key, all: f.threads[i].chunks, known: true}
			if c.fill() {
				c.start = c.events[0].Time
				r.h = append(r.h, c)
			}
		}
	}
	for _, m := range marks {
		c := &runCursor{f: f, thread: m.Thread, all: f.Chunks(m.Thread), chunk: m.Chunk, next: m.Next, known: true}
		if m.Chunk < 0 || m.Skip < 0 || !c.fill() {
			continue
		}
		if m.Skip > 0 {
			c.events = c.events[min(m.Skip, len(c.events)):]
			c.lost, c.known = false, true
		}
		c.lost, c.known = c.lost || m.Lost, c.known && m.Known
		c.goroutine, c.start = m.Goroutine, m.Start
		r.h = append(r.h, c)
	}
	heap.Init(&r.h)
	return r
}

// Read reads on, until yield returns false. What yield was given then counts as read.
func (r *GoroutineReader) Read(yield func(goroutine uint64, thread uint32, events []Event, lost bool) bool) {
	for len(r.h) > 0 {
		c := r.h[0]
		more, ok := c.run(r.h.second(), yield)
		if more {
			heap.Fix(&r.h, 0)
		} else {
			heap.Pop(&r.h)
		}
		if !ok {
			return
		}
	}
}

// Done reports whether all has been read.
func (r *GoroutineReader) Done() bool { return len(r.h) == 0 }

// Marks says where the reader is, in an order that depends on nothing else. It may be called between calls of Read only.
func (r *GoroutineReader) Marks() []RunMark {
	marks := make([]RunMark, 0, len(r.h))
	for _, c := range r.h {
		m := RunMark{Thread: c.thread, Chunk: c.chunk, Next: c.next, Goroutine: c.goroutine, Known: c.known, Lost: c.lost, Start: c.start}
		if len(c.events) > 0 {
			m.Chunk, m.Skip, m.Next = c.chunk-1, len(c.buf)-len(c.events), c.due
		}
		marks = append(marks, m)
	}
	slices.SortFunc(marks, func(a, b RunMark) int { return cmp.Compare(a.Thread, b.Thread) })
	return marks
}

// Ends says whether the events of a goroutine are its last: it is in the function by which goroutines end, which never returns.
func (f *File) Ends(events []Event) bool {
	e := &events[len(events)-1]
	return f.goexit != 0 && e.Word == f.goexit<<1
}

// Goexit is the name of the function in which goroutines end.
const Goexit = "runtime.goexit1"

// findGoexit finds that function.
func (f *File) findGoexit() uint32 {
	for i := range f.functions.blocks {
		b := &f.functions.blocks[i]
		for k := range b.list {
			if b.list[k].Name == Goexit {
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
	all       []Chunk
	chunk     int // index of the next to be decoded
	buf       []Event
	events    []Event // of buf, still to be read
	next      uint32  // number of the chunk that is due
	due       uint32  // and of that which was, when buf was decoded
	lost      bool    // events are missing before these
	goroutine uint64
	known     bool // goroutine is: no event that names one can be missing
	start     uint64
}

// fill decodes the next chunk when there is nothing left of the last.
func (c *runCursor) fill() bool {
	for len(c.events) == 0 {
		if c.chunk >= len(c.all) {
			return false
		}
		chunk := c.all[c.chunk]
		c.chunk++
		damaged := chunk.Seq != c.next
		c.due, c.next = c.next, chunk.Seq+1
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
	for ok = true; ok && c.fill(); {
		n := 0
		for n < len(c.events) && c.events[n].Word&switchMask != SwitchWord && c.events[n].Time <= limit {
			n++
		}
		if n > 0 && c.known {
			ok = yield(c.goroutine, c.thread, c.events[:n], c.lost)
			c.lost = false
		}
		c.events = c.events[n:]
		if len(c.events) > 0 && c.events[0].Word&switchMask != SwitchWord {
			c.start = c.events[0].Time
			return true, ok
		}
		if len(c.events) > 0 {
			c.goroutine, _ = c.events[0].Goroutine()
			c.known, c.start = true, c.events[0].Time
			c.events = c.events[1:]
			return true, ok
		}
	}
	return !ok, ok // behind the last event of a chunk the run may go on
}

// runHeap has the thread first whose next run began first, or the thread that appeared first.
type runHeap []*runCursor

// second is when the next run of the other threads begins.
func (h runHeap) second() uint64 {
	at := uint64(math.MaxUint64)
	for i := 1; i < len(h) && i < 3; i++ {
		at = min(at, h[i].start)
	}
	return at
}

func (h runHeap) Len() int      { return len(h) }
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)   { *h = append(*h, x.(*runCursor)) }
func (h runHeap) Less(i, j int) bool {
	return h[i].start < h[j].start || h[i].start == h[j].start && h[i].thread < h[j].thread
}

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
	// States is what it did from its first event to its last, in nanoseconds, if states are known; Unknown is how long that isn't known.
	States  StateTimes
	Unknown uint64
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
	now  map[goroutineKey]uint64 // tick of its last event

	states *GoroutineStates // nil if none are known
}

// tallyGoroutines adds all events of the reel to the tally, and to the summary what is of threads and of goroutines.
func tallyGoroutines(f *File, s *Summary) *tally {
	t := goroutineTally{tally: newTally(f), open: map[goroutineKey]*Pairer{}, sums: map[goroutineKey]*GoroutineSummary{}, last: map[uint32]goroutineKey{}, now: map[goroutineKey]uint64{}, states: f.GoroutineStates()}
	t.split = t.states != nil
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
	if t.states != nil {
		t.sumGoroutines(s)
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
	if sum == nil {
		sum = &GoroutineSummary{ID: id}
		t.sums[key] = sum
	}
	if p == nil {
		p = t.pairerFor(max(t.now[key], events[0].Time))
		t.open[key] = p
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
	if t.states != nil {
		t.states.Push(p, id, thread, events, lost)
	} else {
		p.Push(events)
	}
	t.now[key] = p.now
	calls, unmatched = p.Calls-calls, p.Unmatched-unmatched
	sum.Calls += calls
	sum.UnmatchedExits += unmatched
	of.Calls += calls
	of.UnmatchedExits += unmatched
	if t.f.Ends(events) {
		p.Abandon()
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
	p.SetTops(nil)
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
