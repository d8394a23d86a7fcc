package viewer

import (
	"cmp"
	"container/heap"
	"math"
	"math/bits"
	"net/http"
	"slices"

	"github.com/callreel/callreel/reel"
)

// A bucket of durations is a quarter of a doubling: below 4 ns each nanosecond has its own.
const (
	bucketBits = 2
	bucketStep = 1 << bucketBits
	buckets    = (64 - bucketBits + 1) * bucketStep
)

// bucketOf is the bucket of a duration.
func bucketOf(ns uint64) int {
	if ns < bucketStep {
		return int(ns)
	}
	shift := bits.Len64(ns) - bucketBits - 1
	return shift*bucketStep + int(ns>>shift)
}

// bucketStart is the shortest duration of a bucket.
func bucketStart(i int) uint64 {
	if i < 2*bucketStep {
		return uint64(i)
	}
	shift := i/bucketStep - 1
	return uint64(bucketStep+i%bucketStep) << shift
}

// durationCollector counts the calls of a function by how long they took.
type durationCollector struct {
	piece      *piece
	clock      *reel.TickClock
	function   uint32
	calls      [buckets]uint64
	incomplete [buckets]uint64 // of calls
}

func (c *durationCollector) only() uint32             { return c.function }
func (c *durationCollector) begin(p *piece)           { c.piece = p }
func (c *durationCollector) enter(uint32, *reel.Call) {}

func (c *durationCollector) leave(_ uint32, call *reel.Call) {
	if !c.piece.counts(call) {
		return
	}
	i := bucketOf(c.clock.Nanoseconds(call.Duration()))
	c.calls[i]++
	if !call.Complete() {
		c.incomplete[i]++
	}
}

// bucketJSON is a bucket as api/distribution has it.
type bucketJSON struct {
	FromNS     uint64 `json:"from_ns"`
	ToNS       uint64 `json:"to_ns"` // exclusive
	Calls      uint64 `json:"calls"`
	Incomplete uint64 `json:"incomplete,omitempty"` // of them, whose ends were not seen, or across losses
}

// distribution is api/distribution: how long the calls of a function took that are open in a range, from the shortest to the
// longest.
func (r *recording) distribution(w http.ResponseWriter, q *query) error {
	s, function, ticket, err := r.functionSpan(q)
	if err != nil {
		return err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	clock := tl.File().Clock()
	list, err := r.analyze(q.ctx, tl, s, ticket, func() collector { return &durationCollector{clock: clock, function: function} })
	if err != nil {
		return err
	}
	sum := list[0].(*durationCollector)
	for _, c := range list[1:] {
		for i := range sum.calls {
			sum.calls[i] += c.(*durationCollector).calls[i]
			sum.incomplete[i] += c.(*durationCollector).incomplete[i]
		}
	}
	answer := struct {
		Buckets []bucketJSON `json:"buckets"`
	}{[]bucketJSON{}}
	first := slices.IndexFunc(sum.calls[:], func(n uint64) bool { return n > 0 })
	for i := first; i >= 0 && i < buckets; i++ {
		b := bucketJSON{FromNS: bucketStart(i), ToNS: math.MaxUint64, Calls: sum.calls[i], Incomplete: sum.incomplete[i]}
		if i+1 < buckets {
			b.ToNS = bucketStart(i + 1)
		}
		answer.Buckets = append(answer.Buckets, b)
	}
	for n := len(answer.Buckets); n > 0 && answer.Buckets[n-1].Calls == 0; n-- {
		answer.Buckets = answer.Buckets[:n-1]
	}
	return writeJSON(w, answer)
}

// functionSpan reads what analyses of one function have in common.
func (r *recording) functionSpan(q *query) (s span, function uint32, ticket string, err error) {
	tl, err := r.wait(q.ctx)
	if err != nil {
		return span{}, 0, "", err
	}
	from, to := q.interval()
	s = span{from, to, q.lanes(len(tl.Lanes()))}
	function, ticket = q.function(), q.ticket()
	return s, function, ticket, q.err
}

// listedCall is a call that is kept for a list.
type listedCall struct {
	lane uint32
	reel.Call
}

// callHeap has the call first that is the first to go when better ones come.
type callHeap struct {
	list   []listedCall
	better func(a, b *listedCall) int // negative if a is to be listed before b
}

func (h *callHeap) Len() int           { return len(h.list) }
func (h *callHeap) Less(i, j int) bool { return h.better(&h.list[i], &h.list[j]) > 0 }
func (h *callHeap) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *callHeap) Push(x any)         { h.list = append(h.list, x.(listedCall)) }

func (h *callHeap) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}

// add keeps a call if it is one of the best.
func (h *callHeap) add(c listedCall, limit int) {
	switch {
	case len(h.list) < limit:
		heap.Push(h, c)
	case limit > 0 && h.better(&c, &h.list[0]) < 0:
		h.list[0] = c
		heap.Fix(h, 0)
	}
}

func earlier(a, b *listedCall) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.lane, b.lane), cmp.Compare(a.Depth, b.Depth))
}

func longer(a, b *listedCall) int {
	return cmp.Or(cmp.Compare(b.Duration(), a.Duration()), earlier(a, b))
}

// callCollector lists the longest, or the first, calls of a function.
type callCollector struct {
	piece    *piece
	clock    *reel.TickClock
	function uint32
	low      uint64 // nanoseconds
	high     uint64 // exclusive
	limit    int
	calls    callHeap
	total    uint64
}

func (c *callCollector) only() uint32             { return c.function }
func (c *callCollector) begin(p *piece)           { c.piece = p }
func (c *callCollector) enter(uint32, *reel.Call) {}

func (c *callCollector) leave(lane uint32, call *reel.Call) {
	if !c.piece.counts(call) {
		return
	}
	if c.low > 0 || c.high != math.MaxUint64 {
		if d := c.clock.Nanoseconds(call.Duration()); d < c.low || d >= c.high {
			return
		}
	}
	c.total++
	c.calls.add(listedCall{lane, *call}, c.limit)
}

// Limits of api/calls.
const (
	defaultCalls = 100
	mostCalls    = 10_000
)

// callsOf is api/calls: the longest or the first calls of a function in a range, of those that took from min to below max.
func (r *recording) callsOf(w http.ResponseWriter, q *query) error {
	s, function, ticket, err := r.functionSpan(q)
	low, high := q.time("min", 0), q.time("max", math.MaxUint64)
	order, limit := q.choice("sort", "longest", "time"), q.integer("limit", defaultCalls, 0, mostCalls)
	if err = cmp.Or(err, q.err); err != nil {
		return err
	}
	tl, err := r.wait(q.ctx)
	if err != nil {
		return err
	}
	f := tl.File()
	better := longer
	if order == "time" {
		better = earlier
	}
	list, err := r.analyze(q.ctx, tl, s, ticket, func() collector {
		return &callCollector{clock: f.Clock(), function: function, low: low, high: high, limit: limit, calls: callHeap{better: better}}
	})
	if err != nil {
		return err
	}
	answer := struct {
		Calls []callJSON `json:"calls"`
		Total uint64     `json:"total"`
	}{Calls: []callJSON{}}
	var calls []listedCall
	for _, c := range list {
		answer.Total += c.(*callCollector).total
		calls = append(calls, c.(*callCollector).calls.list...)
	}
	slices.SortFunc(calls, func(a, b listedCall) int { return better(&a, &b) })
	naming := newNaming(f)
	for i := range calls[:min(limit, len(calls))] {
		c := &calls[i]
		name, module := naming.of(function)
		start := tl.NS(c.Start)
		answer.Calls = append(answer.Calls, callJSON{
			Lane: c.lane, Row: tl.Row(c.lane, c.Stack, c.Depth), Func: c.Func, Name: name, Module: module,
			StartNS: start, DurationNS: f.Clock().Nanoseconds(c.Duration()), SelfNS: f.Clock().Nanoseconds(c.Self()),
			Depth: c.Depth, Stack: c.Stack, Flags: flagNames(c.Flags),
		})
	}
	return writeJSON(w, answer)
}
