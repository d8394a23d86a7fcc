package past

import (
	"cmp"
	"container/heap"
	"container/list"
	"slices"
	"sync"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// Config says what is kept.
type Config struct {
	// Memory is how many bytes may be used for all that is kept, what encodes it included.
	Memory int
	// Mode is which events carry the time. Goroutines says that it is a Go program.
	Mode       reel.ClockMode
	Goroutines bool
	// Translate gives events the numbers that their functions have in all reels that chunks are written to.
	Translate func(events []reel.Event) error
}

// Store keeps what the rings have held of all threads. What all threads have called since Reaches is in it, or in the rings. Its methods may
// be called by several goroutines.
type Store struct {
	c Config

	mu      sync.Mutex // guards what follows
	threads map[int]*thread
	byAge   aged
	packs   *list.List // of *pack: that are being filled, the one that was longest not added to first
	coding  *list.List // those of them that have packers
	idle    []*reel.Packer
	packers int // in use or idle
	used    int
	added   uint64 // bytes, of all chunks that there have been
	events  uint64 // that are kept
	reaches uint64 // To of the youngest chunk that was dropped
	lost    uint64 // the same, of threads of which nothing is known any more
	open    []int
}

// thread is one by its ID. When that is used again, the new one's chunks follow the old one's.
type thread struct {
	tid    int
	chunks []*Chunk // oldest first
	pack   *pack    // nil if nothing is being filled
	next   uint32   // number of the ring's next chunk
	base   Base
}

// Base is what is known of a thread from before its first chunk.
type Base struct {
	// Next is the number of the ring's chunk behind those that were dropped, To when the thread got that, 0 if none were.
	Next uint32
	To   uint64
	// Open are the calls that were open then.
	Open []Open
}

// Held is what is kept of a thread. The chunks stay valid until Release.
type Held struct {
	TID int
	Base
	Chunks []*Chunk
}

// New returns a store that is empty.
func New(c Config) *Store {
	return &Store{c: c, threads: map[int]*thread{}, packs: list.New(), coding: list.New()}
}

const (
	// fewEvents is up to how many events of a thread are kept as they are.
	fewEvents = 256
	// maxPayloads and maxMarks end a chunk: bytes of what events carry, and marks.
	maxPayloads = 256 << 10
	maxMarks    = 8 << 10
	// threadCost is what a thread takes, in bytes, here and where its name and times are kept.
	threadCost = 400
	// maxThreads is how many threads are known of which nothing is kept: the target says which there are.
	maxThreads = 10_000
)

// packersFor is how many chunks of that memory may be encoded at once: an eighth of it.
func packersFor(memory int) int { return min(max(memory/8/reel.PackerSize, 2), 64) }

// Add keeps what a chunk of the ring has held: those of one thread come in their order. The run's events are changed.
func (s *Store) Add(run *ring.Run) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[run.TID]
	if t == nil {
		t = &thread{tid: run.TID}
		s.threads[run.TID] = t
		s.used += threadCost
	}
	if t.pack != nil && run.Seq != t.next {
		if err := s.close(t.pack); err != nil {
			return err
		}
	}
	if t.pack == nil {
		s.begin(t, run)
	} else {
		s.packs.MoveToBack(t.pack.at)
		if t.pack.coding != nil {
			s.coding.MoveToBack(t.pack.coding)
		}
	}
	t.next = run.Seq + 1
	var above uint32
	if run.Peaks != nil {
		above, s.open = highest(run.Events, run.Peaks, s.open)
	} else {
		above, s.open = settle(run.Events, s.open)
	}
	if s.c.Goroutines {
		s.open = lastSwitch(run.Events, s.open)
	}
	p := t.pack
	c := p.c
	if len(run.Events) > 0 {
		c.Opens = slices.Clip(later(c.Opens, above, opened(run, s.open), s.c.Goroutines))
		c.Above = max(c.Above, above)
	}
	c.Next, c.To = t.next, run.To
	ring.InOrder(run.Marks)
	c.Marks = append(c.Marks, run.Marks...)
	for _, m := range run.MarkPayloads {
		m.Event += len(c.Marks) - len(run.Marks)
		m.Data = slices.Clone(m.Data)
		c.MarkPayloads = append(c.MarkPayloads, m)
	}
	p.count(s, (len(run.Marks)+len(run.Payloads))*reel.EventSize)
	if err := s.fill(t, run); err != nil {
		return err
	}
	return s.shrink()
}

// begin begins a chunk.
func (s *Store) begin(t *thread, run *ring.Run) {
	fresh := run.Seq != t.next || len(t.chunks) == 0 && t.base.To == 0
	p := &pack{t: t, c: &Chunk{TID: t.tid, Seq: run.Seq, Next: run.Seq, From: run.From, Fresh: fresh, goroutines: s.c.Goroutines}}
	t.pack = p
	p.count(s, overhead)
	p.at = s.packs.PushBack(p)
}

// Hold returns what is kept of all threads, in the order of their IDs. Release is to be called for it.
func (s *Store) Hold() ([]Held, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for e := s.packs.Front(); e != nil; e = s.packs.Front() {
		if err := s.close(e.Value.(*pack)); err != nil {
			return nil, err
		}
	}
	if err := s.shrink(); err != nil {
		return nil, err
	}
	all := make([]Held, 0, len(s.threads))
	for _, t := range s.threads {
		for _, c := range t.chunks {
			c.refs++
		}
		all = append(all, Held{t.tid, t.base, slices.Clone(t.chunks)})
	}
	slices.SortFunc(all, func(a, b Held) int { return cmp.Compare(a.TID, b.TID) })
	return all, nil
}

// Open are the calls of a thread that are open behind all that is kept of it, if the ring's next chunk is the one of that number.
func (s *Store) Open(tid int, next uint32) []Open {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.threads[tid]
	if t == nil || t.next != next {
		return nil
	}
	return t.open()
}

// open are the calls that are open behind all that is kept.
func (t *thread) open() []Open {
	open := t.base.Open
	for _, c := range t.chunks {
		open = c.After(open)
	}
	if t.pack != nil {
		open = t.pack.c.After(open)
	}
	return open
}

// EachOpen calls f with the calls of each thread that are open behind all that is kept of it. f must not call the store.
func (s *Store) EachOpen(f func(tid int, open []Open)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tid, t := range s.threads {
		f(tid, t.open())
	}
}

// Release lets go what Hold has returned.
func (s *Store) Release(all []Held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range all {
		for _, c := range h.Chunks {
			c.unref()
		}
	}
}

func (c *Chunk) unref() {
	if c.refs--; c.refs == 0 {
		c.free()
	}
}

// shrink drops chunks until the rest is no more than what may be kept.
func (s *Store) shrink() error {
	for s.used+s.packers*reel.PackerSize > s.c.Memory {
		if len(s.byAge) == 0 {
			e := s.packs.Front()
			if e == nil {
				return nil
			}
			if err := s.close(e.Value.(*pack)); err != nil {
				return err
			}
			continue
		}
		s.drop(heap.Pop(&s.byAge).(*Chunk))
	}
	return nil
}

// drop drops a chunk, which is its thread's oldest.
func (s *Store) drop(c *Chunk) {
	t := s.threads[c.TID]
	s.used -= c.bytes
	s.events -= uint64(c.Events())
	s.reaches = max(s.reaches, c.To)
	t.chunks = slices.Delete(t.chunks, 0, 1)
	s.used -= bytesOf(t.base.Open)
	t.base = Base{c.Next, c.To, c.After(t.base.Open)}
	s.used += bytesOf(t.base.Open)
	c.unref()
	if len(t.chunks) == 0 && t.pack == nil && len(s.threads) > maxThreads {
		s.forget(t)
	}
}

// forget forgets a thread of which nothing is kept.
func (s *Store) forget(t *thread) {
	s.lost = max(s.lost, t.base.To)
	s.used -= threadCost + bytesOf(t.base.Open)
	delete(s.threads, t.tid)
}

// Forget forgets threads of which nothing is kept, but for those that live.
func (s *Store) Forget(lives func(tid int) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tid, t := range s.threads {
		if len(t.chunks) == 0 && t.pack == nil && !lives(tid) {
			s.forget(t)
		}
	}
}

// Threads are those of which something is kept, and Oldest when the oldest that is was got by its thread, in TSC ticks; now if nothing is.
func (s *Store) Threads() (threads map[int]bool, oldest uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	threads, oldest = map[int]bool{}, ring.Ticks()
	for tid, t := range s.threads {
		if len(t.chunks) > 0 {
			oldest = min(oldest, t.chunks[0].From)
		} else if t.pack != nil {
			oldest = min(oldest, t.pack.c.From)
		} else {
			continue
		}
		threads[tid] = true
	}
	return threads, oldest
}

// Stats is how much is kept.
type Stats struct {
	Memory int    // bytes that may be used
	Used   int    // that are
	Added  uint64 // bytes that have been added up to now, those that were dropped included
	Events uint64 // that are kept
	// Reaches is since when nothing was dropped, in ticks; 0 if nothing was. Lost is up to when something was dropped of threads that
	// aren't known any more.
	Reaches, Lost uint64
}

// Stats returns the counts up to now.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{s.c.Memory, s.used + s.packers*reel.PackerSize, s.added, s.events, s.reaches, s.lost}
}

// Close gives all memory back.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.byAge {
		c.unref()
	}
	s.byAge, s.threads, s.idle = nil, nil, nil
}

// aged are chunks by when they were left, the oldest first: a heap.
type aged []*Chunk

func (a aged) Len() int { return len(a) }
func (a aged) Less(i, j int) bool {
	return a[i].To < a[j].To || a[i].To == a[j].To && a[i].Seq < a[j].Seq
}
func (a aged) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *aged) Push(x any)   { *a = append(*a, x.(*Chunk)) }
func (a *aged) Pop() any {
	old := *a
	n := len(old) - 1
	c := old[n]
	old[n] = nil
	*a = old[:n]
	return c
}
