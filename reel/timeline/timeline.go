package timeline

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/reel"
)

// Timeline is an indexed reel. Its methods may be called by several goroutines
// at once.
type Timeline struct {
	opt   Options
	ids   segmentIDs
	cache *cache
	live  atomic.Pointer[snapshot]

	refresh sync.Mutex
}

// snapshot is a reel as far as it had come. It does not change.
type snapshot struct {
	generation uint32 // tells batches apart in the cache
	f          *reel.File
	clock      clock
	lanes      []*lane
	done       *columns // calls at depth 0
	end        uint64   // ticks from the start
	cache      *cache
	workers    *sync.Pool // of *worker
	atOnce     uint64
	unpackers  *sync.Pool // of *unpacker
	indexed    bool       // by the index in the reel

	// Of a reel of goroutines:
	batches []batch
	laneOf  map[laneKey]*lane
}

// Open opens the timeline of a reel, by the index in it or by making one in
// memory. The File must stay open as long as the Timeline is used.
func Open(ctx context.Context, f *reel.File, opt Options) (*Timeline, error) {
	t := newTimeline(opt)
	s := t.storedIn(f)
	if s == nil {
		var err error
		if s, err = t.index(ctx, f, nil); err != nil {
			return nil, err
		}
	}
	s.findStates(nil)
	t.live.Store(s)
	return t, nil
}

// Stored is Open for who can do without an index: it returns nil if the reel has none that can be used.
func Stored(f *reel.File, opt Options) *Timeline {
	t := newTimeline(opt)
	s := t.storedIn(f)
	if s == nil {
		return nil
	}
	t.live.Store(s)
	return t
}

// storedIn is what is stored of the timeline in a closed reel, nil if there is nothing or if it can't be used.
func (t *Timeline) storedIn(f *reel.File) *snapshot {
	var s *snapshot
	err := reel.CatchFaults(func() (err error) {
		s, err = t.stored(f)
		return err
	})
	if err != nil {
		return nil
	}
	return s
}

func newTimeline(opt Options) *Timeline {
	if opt.segment == 0 {
		opt.segment, opt.small, opt.atOnce = segmentEvents, smallSegment, eventsAtOnce
	}
	return &Timeline{opt: opt, cache: newCache(opt.Cache)}
}

func (t *Timeline) newSnapshot(f *reel.File) *snapshot {
	return &snapshot{
		generation: uint32(t.ids.Add(1)), f: f, clock: newClock(f), cache: t.cache, atOnce: t.opt.atOnce,
		workers: new(sync.Pool), unpackers: new(sync.Pool),
	}
}

// index indexes what of a reel is not in old.
func (t *Timeline) index(ctx context.Context, f *reel.File, old *snapshot) (*snapshot, error) {
	s := t.newSnapshot(f)
	b := &builder{s: s, old: old, before: old, growing: !f.Closed(), drops: dropsByThread(f), missing: missingByThread(f), ids: &t.ids, opt: t.opt}
	return s, b.build(ctx)
}

// build indexes the reel.
func (b *builder) build(ctx context.Context) error {
	s, f := b.s, b.s.f
	s.end = s.clock.rel(f.LastTick())
	if s.clock.untimed {
		s.end = 0
		for _, th := range f.Threads() {
			s.end = max(s.end, eventsOf(f.Chunks(th.Key)))
		}
	}
	before := uint64(0)
	if b.old != nil {
		s.workers, s.unpackers = b.old.workers, b.old.unpackers
		s.done = b.old.done.clone()
		s.done.widen(s.end)
		before = b.old.f.Events()
	} else {
		s.done = newColumns(s.window(), s.end)
	}
	if f.Header().Goroutines {
		before = 0
	}
	b.density = newDensity(f, &s.clock, s.end, b.growing, b.opt.atOnce)
	b.count = counter(b.opt.Progress, before, f.Events())
	if b.stored {
		b.count = forgetting(f, b.count)
	}
	index := b.buildThreads
	if f.Header().Goroutines {
		s.done, b.old = newColumns(s.window(), s.end), nil
		index = b.buildGoroutines
	}
	if err := index(ctx, b.opt.Workers); err != nil {
		return err
	}
	for _, l := range s.lanes {
		if n := len(l.segments); n > 0 {
			s.end = max(s.end, l.segments[n-1].end)
		}
		if n := len(l.gaps); n > 0 {
			s.end = max(s.end, l.gaps[n-1].end)
		}
	}
	return nil
}

func (t *Timeline) workers() int {
	if t.opt.Workers > 0 {
		return t.opt.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// File is the reel as of the last Refresh.
func (t *Timeline) File() *reel.File { return t.live.Load().f }

// Indexed reports whether the reel had an index that could be used.
func (t *Timeline) Indexed() bool { return t.live.Load().indexed }

// Lanes are the lanes, in order of their appearance. The caller owns the slice.
func (t *Timeline) Lanes() []Lane {
	s := t.live.Load()
	list := make([]Lane, len(s.lanes))
	for i, l := range s.lanes {
		list[i] = l.Lane
	}
	return list
}

// Duration is the length of the recording.
func (t *Timeline) Duration() uint64 {
	s := t.live.Load()
	return s.clock.toNS(s.end)
}

// Calls counts the calls of each function, by ID, as far as IDs are in the reel's table.
func (t *Timeline) Calls() map[uint32]uint64 {
	s := t.live.Load()
	counts := map[uint32]uint64{} // a damaged table has few functions and may have any IDs
	for _, l := range s.lanes {
		for i := range l.segments {
			_ = eachFunction(l.segments[i].summary, func(fn, calls uint32) bool {
				if s.f.Describes(fn) {
					counts[fn] += uint64(calls)
				}
				return true
			})
		}
	}
	return counts
}

// Refresh takes in what was appended to the reel since, and says whether there
// was anything. It opens the file again; answers after it are those of File.
func (t *Timeline) Refresh(ctx context.Context) (changed bool, err error) {
	t.refresh.Lock()
	defer t.refresh.Unlock()
	old := t.live.Load()
	if old.f.Closed() {
		return false, nil
	}
	f, err := reel.Open(old.f.Name())
	if err != nil {
		return false, err
	}
	if f.Size() == old.f.Size() {
		return false, f.Close()
	}
	f.NameAs(old.f)
	before := old
	if f.Size() < old.f.Size() || f.Header().StartUnixNS != old.f.Header().StartUnixNS || f.FirstTick() != old.f.FirstTick() {
		before = nil // another recording
	}
	s := t.storedIn(f) // it has just been closed, as a rule with an index
	if s == nil || !s.continues(before) {
		if s, err = t.index(ctx, f, before); err != nil {
			return false, errors.Join(err, f.Close())
		}
	}
	// Whoever uses it may do so as long as they like.
	runtime.SetFinalizer(f, func(f *reel.File) { f.Close() })
	s.findStates(before)
	t.live.Store(s)
	return true, nil
}

// continues reports whether the lanes of old, which may be nil, have their places here too.
func (s *snapshot) continues(old *snapshot) bool {
	if old == nil {
		return true
	}
	if len(s.lanes) < len(old.lanes) {
		return false
	}
	for i, l := range old.lanes {
		n := s.lanes[i]
		if n.Goroutine != l.Goroutine || l.Goroutine == 0 && n.Thread != l.Thread {
			return false
		}
	}
	return true
}
