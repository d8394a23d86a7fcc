package timeline

import (
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
	p   *pairing
	buf []reel.Event
}

func (s *snapshot) takeWorker() *worker {
	w, _ := s.workers.Get().(*worker)
	if w == nil {
		w = &worker{p: newPairing(nil)}
	}
	w.p.clock, w.p.ended = &s.clock, nil
	return w
}

// load returns the calls of a segment of a lane, decoding them if need be.
func (s *snapshot) load(l *lane, i int) *decoded {
	seg := &l.segments[i]
	if seg.chunks == 0 {
		return s.loadWindow(l, seg)
	}
	return s.cache.get(seg.callsKey(), func() (any, int64) {
		d := s.decode(l, seg, nil)
		return d, d.bytes()
	}).(*decoded)
}

// Two things of a segment may be in the cache.
func (seg *segment) callsKey() uint64 { return seg.id << 1 }
func (seg *segment) fineKey() uint64  { return seg.id<<1 | 1 }

// fine are all levels of a segment, and what gaps turned out to be in it.
type fine struct {
	levels []byte
	gaps   []gap
}

// loadFine makes the levels of a segment if need be.
func (s *snapshot) loadFine(l *lane, i int) *fine {
	seg := &l.segments[i]
	return s.cache.get(seg.fineKey(), func() (any, int64) {
		z, _ := s.summarizers.Get().(*summarizer)
		if z == nil {
			z = &summarizer{}
		}
		defer s.summarizers.Put(z)
		d, _ := s.cache.peek(seg.callsKey()).(*decoded)
		if d == nil {
			if seg.chunks == 0 {
				d = s.loadWindow(l, seg)
			} else {
				d = s.decode(l, seg, z.sorted)
				z.sorted = d.calls
			}
		}
		f := &fine{levels: z.fineLevels(seg, d.calls, d.rows), gaps: d.gaps}
		return f, int64(len(f.levels)) + 200
	}).(*fine)
}

func (d *decoded) bytes() int64 { return int64(len(d.calls))*callBytes + int64(len(d.rows))*12 + 200 }

// decode returns the calls of a segment, in dst if they fit.
func (s *snapshot) decode(l *lane, seg *segment, dst []call) *decoded {
	w := s.takeWorker()
	defer s.workers.Put(w)
	w.p.begin(l.state(seg), l.openSpans(seg), seg.now)
	d := &decoded{}
	s.pushChunks(l, seg, w, func(lost uint64, at uint64) {
		d.gaps = append(d.gaps, gap{at, seg.end, lost})
	})
	d.calls, d.rows = byRow(w.p.calls, dst)
	return d
}

// pushChunks gives the events of a segment to w's pairing.
func (s *snapshot) pushChunks(l *lane, seg *segment, w *worker, damaged func(lost, at uint64)) {
	chunks := s.f.Chunks(l.Thread)
	for i := seg.chunk; i < seg.chunk+seg.chunks && int(i) < len(chunks); i++ {
		c := chunks[i]
		if i > seg.chunk && c.Seq != chunks[i-1].Seq+1 {
			w.p.pairer.Lost()
		}
		events, err := s.f.Decode(c, w.buf)
		w.buf = events
		w.p.push(events)
		if err != nil {
			w.p.pairer.Lost()
			damaged(uint64(max(0, c.Events-len(events))), s.clock.rel(w.p.last))
		}
	}
}
