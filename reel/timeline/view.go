package timeline

import (
	"context"
	"sort"
	"sync"
	"sync/atomic"
)

// View answers a query. Lanes and rows that there are not are left out.
func (t *Timeline) View(ctx context.Context, q Query) (*View, error) {
	s := t.live.Load()
	v := s.newView(q)
	if err := v.loadAll(ctx, t.workers()); err != nil {
		return nil, err
	}
	tasks := v.tasks()
	out := make([][]Row, len(tasks))
	parallel(t.workers(), len(tasks), func(i int) {
		if ctx.Err() == nil {
			out[i] = v.rows(&tasks[i])
		}
	})
	answer := &View{}
	for _, rows := range out {
		answer.Rows = append(answer.Rows, rows...)
	}
	for i := range v.lanes {
		x := &v.lanes[i]
		if gaps := s.laneGaps(x, v); len(gaps) > 0 {
			answer.Gaps = append(answer.Gaps, LaneGaps{x.l.ID, gaps})
		}
	}
	return answer, ctx.Err()
}

// parallel calls do with 0 to n-1 on several goroutines.
func parallel(workers, n int, do func(i int)) {
	if n <= 1 || workers <= 1 {
		for i := range n {
			do(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	wg.Wait()
}

// view is a query being answered, in ticks.
type view struct {
	s        *snapshot
	from, to uint64
	// low and high are from and to extended so far that every bar that reaches
	// into the range is made of all its calls.
	low, high uint64
	grain     uint
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
	decoded *decoded
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

// loadAll finds for each segment a level, and decodes where none is fine enough.
func (v *view) loadAll(ctx context.Context, workers int) error {
	type want struct{ lane, part int }
	var decode []want
	for i := range v.lanes {
		x := &v.lanes[i]
		for k := range x.parts {
			seg := &x.l.segments[x.segFirst+k]
			if x.parts[k].level = v.s.levelFor(seg, v.grain); x.parts[k].level == nil {
				decode = append(decode, want{i, k})
			}
		}
	}
	parallel(workers, len(decode), func(i int) {
		if ctx.Err() != nil {
			return
		}
		x := &v.lanes[decode[i].lane]
		x.parts[decode[i].part].decoded = v.s.load(x.l, x.segFirst+decode[i].part)
	})
	return ctx.Err()
}

// levelFor finds a level of a segment for a grain, nil if its calls must be
// decoded.
func (s *snapshot) levelFor(seg *segment, grain uint) []byte {
	body, err := pickLevel(seg.coarse, grain)
	if body == nil && err == nil && seg.hasFine() && grain >= finestGrain(seg.end-seg.start, fineShift) && !s.cache.has(seg.id) {
		body, err = pickLevel(s.fineBlock(seg), grain)
	}
	if err != nil {
		return nil
	}
	return body
}

// task is some rows of a lane.
type task struct {
	lane        *viewLane
	first, last int
}

// rowsATask is how many rows are merged at a time by one worker.
const rowsATask = 16

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

// rows merges the rows of a task.
func (v *view) rows(t *task) []Row {
	x := t.lane
	l := x.l
	n := t.last - t.first
	mergers := make([]merger, n)
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
		if part.decoded != nil {
			for i, k := range keys {
				calls := part.decoded.row(k)
				from := sort.Search(len(calls), func(i int) bool { return calls[i].end >= v.low })
				for c := from; c < len(calls) && calls[c].start < v.high; c++ {
					b := calls[c].bar()
					mergers[i].add(&b)
				}
			}
		} else {
			v.mergeLevel(part.level, l.segments[x.segFirst+p].start, spans, mergers)
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

// mergeLevel adds the bars of the rows that are wanted.
func (v *view) mergeLevel(level []byte, start uint64, rows map[rowKey]int, mergers []merger) {
	r := rowReader{w: wire{b: level}}
	for {
		k, n, body, ok := r.next()
		if !ok {
			return
		}
		i, ok := rows[k]
		if !ok {
			continue
		}
		bars := barReader{w: wire{b: body}, left: n, at: start}
		var b bar
		for bars.next(&b) {
			if b.start >= v.high {
				break
			}
			if b.end >= v.low {
				mergers[i].add(&b)
			}
		}
	}
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
		if d := x.parts[i].decoded; d != nil && len(d.gaps) > 0 {
			late = append(late, d.gaps...)
		}
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
