package timeline

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callreel/callreel/reel"
)

// segmentEvents is how many events a segment has at most, if it has more than
// one chunk: what can be decoded in some 3 ms.
const segmentEvents = 1 << 17

// segmentIDs numbers segments, for the cache.
type segmentIDs struct{ atomic.Uint64 }

// builder indexes a reel.
type builder struct {
	s       *snapshot
	old     *snapshot // what is indexed already, or nil
	drops   map[uint32][]reel.Drop
	missing map[uint32][]reel.Missing
	count   func(events int)
	ids     *segmentIDs
	opt     Options
	// density says what levels are to be kept.
	density *density
	stored  bool // the index will be in the reel, not kept in memory
	// growing: more may be appended to the reel.
	growing bool
	// before is what a growing reel was; what of it may be kept is in old.
	before *snapshot

	mu sync.Mutex // guards s.done
}

// progressEvery is how often progress is told.
const progressEvery = 50 * time.Millisecond

// counter returns what sums up events and tells of them.
func counter(tell func(done, total uint64), done, total uint64) func(events int) {
	if tell == nil {
		return func(int) {}
	}
	var mu sync.Mutex
	var last time.Time
	return func(events int) {
		mu.Lock()
		defer mu.Unlock()
		done += uint64(events)
		if now := time.Now(); now.Sub(last) >= progressEvery || done >= total {
			last = now
			tell(min(done, total), total)
		}
	}
}

// forgetEvery is after how many events the file's pages are let go of that an index is made for: some 50 MB.
const forgetEvery = 32 << 20

// forgetting is count, and lets go of the file's pages now and then.
func forgetting(f *reel.File, count func(events int)) func(events int) {
	var since atomic.Int64
	return func(events int) {
		if n := since.Add(int64(events)); n >= forgetEvery && since.CompareAndSwap(n, 0) {
			f.Forget()
		}
		count(events)
	}
}

// inMemory is about how many bytes an index may have that is kept in memory.
const inMemory = 160 << 20

// share is the part of a segment's bytes that its levels may take, as one in so
// many: less where all of them would be too much for memory.
func (b *builder) share() int {
	bytes := 0
	for _, th := range b.s.f.Threads() {
		for _, c := range b.s.f.Chunks(th.Key) {
			bytes += c.Bytes
		}
	}
	if b.stored {
		bytes = 0
	}
	return max(maxShare, bytes/inMemory)
}

func dropsByThread(f *reel.File) map[uint32][]reel.Drop {
	by := map[uint32][]reel.Drop{}
	for _, d := range f.Drops() {
		by[d.Thread] = append(by[d.Thread], d)
	}
	return by
}

// buildThreads indexes the lanes of threads, the busiest first.
func (b *builder) buildThreads(ctx context.Context, workers int) error {
	f := b.s.f
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	threads := f.Threads()
	todo := make([]*laneBuilder, 0, len(threads))
	total := uint64(0)
	for i := range threads {
		var old *lane
		if b.old != nil && i < len(b.old.lanes) {
			old = b.old.lanes[i]
		}
		lb := b.lane(uint32(i), &threads[i], old)
		b.s.lanes = append(b.s.lanes, lb.l)
		if lb.chunks != nil {
			todo = append(todo, lb)
			total += lb.l.weight
		}
	}
	slices.SortStableFunc(todo, func(x, y *laneBuilder) int { return cmp.Compare(y.l.weight, x.l.weight) })
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, min(workers, len(todo)))
	for w := range errs {
		wg.Go(func() {
			z := &summarizer{small: b.opt.small, share: b.share(), counts: make([]uint32, f.FunctionCount()+1)}
			p := newPairing(&b.s.clock)
			buf := make([]reel.Event, blockEvents)
			done := newColumns(b.s.done.from, 0)
			done.shift = b.s.done.shift
			undone := newColumns(b.s.done.from, 0)
			for errs[w] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(todo) {
					break
				}
				lb := todo[i]
				lb.z, lb.p, lb.done, lb.undone, lb.buf = z, p, done, undone, buf
				// Decoding ahead is for a lane that the others end long before.
				errs[w] = lb.build(ctx, lb.l.weight > total/uint64(workers))
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.s.done.merge(done)
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// lane prepares a thread's lane: what it has been so far, if that is known, and
// the chunks that are to be indexed, nil if there is nothing to be done.
func (b *builder) lane(id uint32, th *reel.Thread, old *lane) *laneBuilder {
	chunks := b.s.f.Chunks(th.Key)
	lb := &laneBuilder{b: b, drops: b.drops[th.Key], endTick: b.s.f.EndOf(th)}
	l := &lane{}
	if old != nil {
		*l = *old
	}
	lb.l = l
	l.Lane = Lane{ID: id, Thread: th.Key, TID: th.TID, Process: th.Process, Name: th.Name, Calls: l.Calls, Rows: l.Rows, Start: l.Start, End: l.End}
	l.Dropped = dropped(lb.drops)
	if old != nil && old.chunks == len(chunks) && old.drops == len(lb.drops) && !old.open {
		return lb
	}
	l.chunks, l.drops = len(chunks), len(lb.drops)
	lb.chunks = chunks
	if lb.chunks == nil {
		lb.chunks = []reel.Chunk{}
	}
	l.weight = eventsOf(chunks)
	return lb
}

// eventsOf is how many events chunks say that they hold, if that can be.
func eventsOf(chunks []reel.Chunk) (n uint64) {
	for i := range chunks {
		n += uint64(min(chunks[i].Events, chunks[i].Bytes))
	}
	return n
}
