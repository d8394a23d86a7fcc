package timeline

import (
	"cmp"
	"context"
	"errors"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/callreel/callreel/reel"
)

// View answers a query. Lanes and rows that there are not are left out.
func (t *Timeline) View(ctx context.Context, q Query) (*View, error) {
	s := t.live.Load()
	v := s.newView(q)
	if err := v.loadAll(ctx, t.workers(), q.Quick); err != nil {
		return nil, err
	}
	tasks := v.tasks()
	out := make([][]Row, len(tasks))
	err := parallel(t.workers(), len(tasks), func(i int) {
		if ctx.Err() == nil {
			out[i] = v.rows(&tasks[i])
		}
	})
	if err != nil {
		return nil, err
	}
	answer := &View{Pixels: 1}
	if v.coarsest > v.grain {
		answer.Coarse, answer.Pixels = true, 1<<(v.coarsest-v.grain)
	}
	for _, rows := range out {
		answer.Rows = append(answer.Rows, rows...)
	}
	told := map[*lane]bool{}
	for i := range v.lanes {
		x := &v.lanes[i]
		if told[x.l] {
			continue
		}
		told[x.l] = true
		if gaps := s.laneGaps(x, v); len(gaps) > 0 {
			answer.Gaps = append(answer.Gaps, LaneGaps{x.l.ID, gaps})
		}
	}
	if q.States {
		if err := v.states(ctx, t.workers(), &q, answer); err != nil {
			return nil, err
		}
	}
	return answer, ctx.Err()
}

// parallel calls do, which may read summaries in the file, with 0 to n-1 on several
// goroutines.
func parallel(workers, n int, do func(i int)) error {
	var next atomic.Int64
	work := func() error {
		return reel.CatchFaults(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
			return nil
		})
	}
	workers = max(1, min(workers, n))
	if workers == 1 {
		return work()
	}
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() { errs[w] = work() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// view is a query being answered, in ticks.
type view struct {
	s        *snapshot
	from, to uint64
	// low and high are from and to extended so far that every bar that reaches
	// into the range is made of all its calls.
	low, high uint64
	grain     uint
	coarsest  uint // of the levels that are too coarse, if any
	lanes     []viewLane
}

// viewLane is what is wanted of a lane.
type viewLane struct {
	l           *lane
	first, last int // rows, last exclusive
	segFirst    int
	parts       []part // from segment segFirst on
}

// part is a segment as it is to be read: a level, or its calls.
type part struct {
	level   []byte
	merged  *merged
	decoded *decoded
	gaps    []gap // that came to light since the reel was indexed
}

func (s *snapshot) newView(q Query) *view {
	v := &view{s: s, from: s.clock.toTicks(q.From), to: s.clock.toTicks(q.To)}
	v.to = max(v.from, v.to)
	v.grain = min(maxGrain, grainOf(v.to-v.from, q.Width))
	cell := v.grain + cellShift
	v.low = (v.from - min(v.from, 1<<v.grain)) >> cell << cell
	v.high = v.to>>cell<<cell + 1<<cell
	if v.high < v.to {
		v.high = ^uint64(0)
	}
	for _, lr := range q.Lanes {
		if uint64(lr.Lane) >= uint64(len(s.lanes)) {
			continue
		}
		l := s.lanes[lr.Lane]
		x := viewLane{l: l}
		x.first, x.last = clip(lr.First, lr.Count, l.Rows)
		if x.first < x.last && len(l.segments) > 0 {
			n := len(l.segments)
			// Behind the last event there may still be calls that were open then.
			x.segFirst = min(n-1, sort.Search(n, func(i int) bool { return l.segments[i].end >= v.low }))
			next := sort.Search(n, func(i int) bool { return l.segments[i].start >= v.high })
			x.parts = make([]part, max(0, next-x.segFirst))
		}
		v.lanes = append(v.lanes, x)
	}
	return v
}

// clip cuts count rows from first on to those that there are.
func clip(first, count, rows int) (from, to int) {
	if first < 0 {
		count += max(first, -max(0, count))
		first = 0
	}
	if first >= rows || count <= 0 {
		return 0, 0
	}
	return first, first + min(count, rows-first)
}

// loadAll finds for each segment a level that is fine enough, or its calls. What
// isn't there is made, unless the query is for what there is.
func (v *view) loadAll(ctx context.Context, workers int, quick bool) error {
	type want struct {
		x    *viewLane
		part int
	}
	var all, wanted []want
	for i := range v.lanes {
		for k := range v.lanes[i].parts {
			all = append(all, want{&v.lanes[i], k})
		}
	}
	found := make([]bool, len(all))
	err := parallel(workers, len(all), func(i int) { found[i] = v.ready(all[i].x, all[i].part) })
	if err != nil {
		return err
	}
	events := uint64(0)
	for i, w := range all {
		if !found[i] {
			wanted = append(wanted, w)
			events += uint64(w.x.l.segments[w.x.segFirst+w.part].events)
		}
	}
	if quick && events > 2*v.s.atOnce { // never where the levels are there that are to be

		rest := wanted[:0]
		err := reel.CatchFaults(func() error {
			for _, w := range wanted {
				if !v.makeDo(w.x, w.part) {
					rest = append(rest, w)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		wanted = rest
	}
	err = parallel(workers, len(wanted), func(i int) {
		if ctx.Err() == nil {
			v.load(wanted[i].x, wanted[i].part)
		}
	})
	return cmp.Or(err, ctx.Err())
}

// ready takes what there is of a segment if it is fine enough.
func (v *view) ready(x *viewLane, k int) bool {
	p, seg := &x.parts[k], &x.l.segments[x.segFirst+k]
	if p.level = pickLevel(seg.summary, v.grain); p.level != nil {
		return true
	}
	if m, _ := v.s.cache.peek(seg.mergedKey()).(*merged); m != nil && m.grain <= v.grain && v.high <= m.until {
		p.merged, p.gaps = m, m.gaps
		return true
	}
	if d, _ := v.s.cache.peek(seg.callsKey()).(*decoded); d != nil {
		p.decoded, p.gaps = d, d.gaps
		return true
	}
	return false
}

// load makes what ready did not find.
func (v *view) load(x *viewLane, k int) {
	p, seg := &x.parts[k], &x.l.segments[x.segFirst+k]
	if seg.chunks > 0 && v.grain >= grainOfPart(seg.end-seg.start, fineShift) {
		p.merged = v.s.merge(x.l, x.segFirst+k, v.grain, v.high)
		p.gaps = p.merged.gaps
		return
	}
	p.decoded = v.s.load(x.l, x.segFirst+k)
	p.gaps = p.decoded.gaps
}

// makeDo takes the finest level that there is, though it is too coarse.
func (v *view) makeDo(x *viewLane, k int) bool {
	level, grain := finestLevel(x.l.segments[x.segFirst+k].summary)
	if level == nil {
		return false
	}
	x.parts[k].level = level
	v.coarsest = max(v.coarsest, grain)
	return true
}

// tasks are the lanes, and where they have many rows parts of them.
func (v *view) tasks() []task {
	var list []task
	for i := range v.lanes {
		x := &v.lanes[i]
		for r := x.first; r < x.last; r += rowsATask {
			list = append(list, task{x, r, min(x.last, r+rowsATask)})
		}
	}
	return list
}

// task is some rows of a lane.
type task struct {
	lane        *viewLane
	first, last int
}

// rowsATask is how many rows are merged at a time by one worker. The rows above
// them in a level are unpacked too.
const rowsATask = 128

// unpacker is what merging rows needs, used again.
type unpacker struct {
	coder   levelCoder
	mergers []merger
}

// rows are so many mergers without bars.
func (z *unpacker) rows(n int) []merger {
	for z.mergers = z.mergers[:cap(z.mergers)]; len(z.mergers) < n; {
		z.mergers = append(z.mergers, merger{})
	}
	for i := range z.mergers[:n] {
		z.mergers[i] = merger{out: z.mergers[i].out[:0]}
	}
	return z.mergers[:n]
}

// rows merges the rows of a task.
func (v *view) rows(t *task) []Row {
	x := t.lane
	l := x.l
	n := t.last - t.first
	z, _ := v.s.unpackers.Get().(*unpacker)
	if z == nil {
		z = new(unpacker)
	}
	defer v.s.unpackers.Put(z)
	mergers := z.rows(n)
	keys := make([]rowKey, n)
	spans := make(map[rowKey]int, n)
	for i := range mergers {
		keys[i], _ = l.key(t.first + i)
		mergers[i].grain = v.grain
		spans[keys[i]] = i
	}
	addSpan := func(i int, sp *span) {
		b := sp.bar()
		mergers[i].add(&b)
	}
	for _, top := range l.segments[x.segFirst].stacks {
		for k := top.top; k >= 0; k = l.spans[k].around {
			if i, ok := spans[l.spans[k].key()]; ok {
				addSpan(i, &l.spans[k])
			}
		}
	}
	for p := range x.parts {
		part := &x.parts[p]
		switch {
		case part.decoded != nil:
			for i, k := range keys {
				calls := part.decoded.row(k)
				from := sort.Search(len(calls), func(i int) bool { return calls[i].end >= v.low })
				to := from + sort.Search(len(calls)-from, func(i int) bool { return calls[from+i].start >= v.high })
				mergers[i].addCalls(calls[from:to])
			}
		case part.merged != nil:
			for _, r := range part.merged.rows {
				if i, ok := spans[r.key]; ok {
					mergers[i].addBars(v.cut(r.bars))
				}
			}
		default:
			r := z.coder.reader(part.level, l.segments[x.segFirst+p].start, int(l.segments[x.segFirst+p].events))
			for last := keys[n-1]; ; {
				k, bars, ok := r.next()
				if !ok || k > last {
					break
				}
				if i, ok := spans[k]; ok {
					mergers[i].addBars(v.cut(bars))
				}
			}
		}
		from, to := l.spansOf(x.segFirst + p)
		for k := from; k < to; k++ {
			if i, ok := spans[l.spans[k].key()]; ok {
				addSpan(i, &l.spans[k])
			}
		}
	}
	var rows []Row
	for i := range mergers {
		row := Row{Lane: l.ID, Row: t.first + i}
		for k := range mergers[i].out {
			b := &mergers[i].out[k]
			if b.start < v.to && (b.end > v.from || b.start >= v.from) {
				if row.Bars == nil {
					row.Bars = make([]Bar, 0, len(mergers[i].out)-k)
				}
				row.Bars = append(row.Bars, v.s.clock.bar(b))
			}
		}
		if len(row.Bars) > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// cut cuts bars to those that may be in the range, or make up bars that are.
func (v *view) cut(bars []bar) []bar {
	if len(bars) == 0 || bars[0].end >= v.low && bars[len(bars)-1].start < v.high {
		return bars
	}
	from := sort.Search(len(bars), func(i int) bool { return bars[i].end >= v.low })
	to := from + sort.Search(len(bars)-from, func(i int) bool { return bars[from+i].start >= v.high })
	return bars[from:to]
}

func (sp *span) key() rowKey { return keyOf(int(sp.stack), int(sp.depth)) }

func (sp *span) bar() bar {
	return bar{start: sp.start, end: sp.end, busy: sp.end - sp.start, fn: sp.fn, calls: 1, flags: sp.flags}
}

// bar converts to nanoseconds.
func (c *clock) bar(b *bar) Bar {
	start := c.toNS(b.start)
	out := Bar{Start: start, Duration: c.toNS(b.end) - start, Func: b.fn, Calls: b.calls, Flags: b.flags}
	out.Busy = out.Duration
	if b.calls > 1 {
		out.Busy = min(out.Duration, c.toNS(b.busy))
	}
	return out
}

// laneGaps are the gaps of a lane in the view, those of damage that came to
// light only now too.
func (s *snapshot) laneGaps(x *viewLane, v *view) []Gap {
	gaps := s.gapsWithin([]*lane{x.l}, v.from, v.to, 1<<v.grain)
	known := len(x.l.gaps)
	var late []gap
	for i := range x.parts {
		if !s.indexed {
			break // what is damaged was found when the reel was indexed
		}
		late = append(late, x.parts[i].gaps...)
	}
	if len(late) == 0 {
		return gaps
	}
	all := append(late, x.l.gaps[:known:known]...)
	in := all[:0]
	for _, g := range all {
		if g.start <= v.to && g.end >= v.from {
			in = append(in, g)
		}
	}
	return s.mergedGaps(in, 1<<v.grain)
}
