package timeline

import (
	"math"
	"slices"
	"sort"

	"github.com/callreel/callreel/reel"
)

// decoded are the calls of a segment, but for its spans, by row and time.
type decoded struct {
	calls []call
	rows  []rowRange
	gaps  []gap // of chunks that turned out to be damaged
}

// row returns the calls of a row.
func (d *decoded) row(k rowKey) []call {
	i, ok := slices.BinarySearchFunc(d.rows, k, func(r rowRange, k rowKey) int { return int(r.key) - int(k) })
	if !ok {
		return nil
	}
	return d.calls[d.rows[i].from:d.rows[i].to]
}

// lastBefore is the last of sorted calls that starts before a time, or nil.
func lastBefore(calls []call, at uint64) *call {
	i := sort.Search(len(calls), func(i int) bool { return calls[i].start >= at })
	if i == 0 {
		return nil
	}
	return &calls[i-1]
}

// worker is what decoding needs, used again.
type worker struct {
	p     *pairing
	buf   []reel.Event
	merge *rowMergers
}

func (s *snapshot) takeWorker() *worker {
	w, _ := s.workers.Get().(*worker)
	if w == nil {
		w = &worker{p: newPairing(nil)}
	}
	w.p.clock, w.p.ended, w.p.merge = &s.clock, nil, nil
	return w
}

// load returns the calls of a segment of a lane, decoding them if need be.
func (s *snapshot) load(l *lane, i int) *decoded {
	seg := &l.segments[i]
	if seg.chunks == 0 {
		return s.loadBatch(l, seg)
	}
	return s.cache.get(seg.callsKey(), func() (any, int64) {
		d := s.decode(l, seg)
		return d, d.bytes()
	}).(*decoded)
}

// Two things of a segment may be in the cache.
func (seg *segment) callsKey() uint64  { return seg.id << 1 }
func (seg *segment) mergedKey() uint64 { return seg.id<<1 | 1 }

// merged is a segment merged at a grain, and what gaps turned out to be in it.
type merged struct {
	grain uint
	rows  []mergedRow
	until uint64 // all calls that begin before are in it
	gaps  []gap
}

type mergedRow struct {
	key  rowKey
	bars []bar
}

// merge decodes a segment and merges its calls at a grain: those that begin before
// a time, perhaps others.
func (s *snapshot) merge(l *lane, i int, grain uint, until uint64) *merged {
	seg := &l.segments[i]
	m := &merged{grain: grain, until: math.MaxUint64}
	w := s.takeWorker()
	defer s.workers.Put(w)
	w.p.resume(l, seg)
	if w.merge == nil {
		w.merge = new(rowMergers)
	}
	w.merge.begin(grain)
	w.p.merge = w.merge
	events := 0
	m.gaps = s.pushChunks(l, seg, w, func(pushed int) (stop bool) {
		if events += pushed; until < seg.end && events >= blockEvents && s.clock.rel(w.p.last) >= until {
			events = 0
			if stop = w.p.allBegan(l, i, until); stop {
				m.until = until
			}
		}
		return stop
	})
	w.p.merge = nil
	bytes := int64(200)
	for stack := range w.merge.stacks {
		for depth := range w.merge.stacks[stack] {
			if bars := w.merge.stacks[stack][depth].bars; len(bars) > 0 {
				m.rows = append(m.rows, mergedRow{keyOf(stack, depth), slices.Clone(bars)})
				bytes += int64(len(bars))*barBytes + 32
			}
		}
	}
	s.cache.put(seg.mergedKey(), m, bytes)
	return m
}

func (d *decoded) bytes() int64 { return int64(len(d.calls))*callBytes + int64(len(d.rows))*12 + 200 }

// decode returns the calls of a segment.
func (s *snapshot) decode(l *lane, seg *segment) *decoded {
	w := s.takeWorker()
	defer s.workers.Put(w)
	w.p.resume(l, seg)
	d := &decoded{gaps: s.pushChunks(l, seg, w, nil)}
	d.calls, d.rows = byRow(w.p.calls, nil)
	return d
}

// pushChunks gives the events of a segment to w's pairing until stop, if it is set,
// says so, and returns where some are damaged.
func (s *snapshot) pushChunks(l *lane, seg *segment, w *worker, stop func(pushed int) bool) (damaged []gap) {
	stopped := false
	chunks := s.f.Chunks(l.Thread)
	if w.buf == nil {
		w.buf = make([]reel.Event, blockEvents)
	}
	for i := seg.chunk; i < seg.chunk+seg.chunks && int(i) < len(chunks) && !stopped; i++ {
		c := chunks[i]
		if i > seg.chunk && c.Seq != chunks[i-1].Seq+1 {
			w.p.pairer.Lost()
		}
		have := 0
		err := s.f.DecodeBlocks(c, w.buf, func(events []reel.Event) []reel.Event {
			have += len(events)
			w.p.push(events)
			if stopped = stop != nil && stop(len(events)); stopped {
				return nil
			}
			return w.buf
		})
		if err != nil {
			w.p.pairer.Lost()
			damaged = append(damaged, gap{s.clock.rel(w.p.last), seg.end, uint64(max(0, c.Events-have))})
		}
	}
	return damaged
}
