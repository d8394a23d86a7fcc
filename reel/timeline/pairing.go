package timeline

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// call is a call that begins and ends in one segment; times are ticks from the
// recording's start.
type call struct {
	start, end uint64
	spent      uint64 // ticks inside and flags
	fn         uint32
	row        rowKey
}

// flagBits are what reel.CallFlags take.
const flagBits = 3

// spent is ticks inside and flags in one: no recording has so many ticks that they would not fit.
func spent(inside uint64, flags reel.CallFlags) uint64 {
	return min(inside, 1<<(64-flagBits)-1)<<flagBits | uint64(flags)
}

const callBytes = 32

func (c *call) key() rowKey           { return c.row }
func (c *call) inside() uint64        { return c.spent >> flagBits }
func (c *call) flags() reel.CallFlags { return reel.CallFlags(c.spent & (1<<flagBits - 1)) }

func (c *call) bar() bar {
	return bar{start: c.start, end: c.end, busy: c.end - c.start, fn: c.fn, calls: 1, flags: c.flags()}
}

// pairing pairs the events of a lane into the calls of one segment after the
// other.
type pairing struct {
	clock  *clock
	pairer reel.Pairer
	// open are the spans that are open since before the segment, by stack and
	// depth.
	open [][]int32
	// calls are those that began and ended in the segment, in order of their ends.
	calls []call
	// into and merge, if one is set, are given those calls instead.
	into  *summarizer
	merge *rowMergers
	// ended, if set, is called when a span has ended, before its index is taken
	// out of open.
	ended func(index int32, c *reel.Call)
	// last is the highest time so far, in ticks: the calls of a row must be in
	// order of time whatever is in the file.
	last    uint64
	ordinal uint64
}

func newPairing(c *clock) *pairing {
	p := &pairing{clock: c}
	p.pairer.OnCall = p.end
	return p
}

// resume goes on from a segment of a lane.
func (p *pairing) resume(l *lane, seg *segment) {
	p.begin(l.state(seg), l.openSpans(seg), seg.now)
	p.pairer.SetTops(l.tops)
}

// begin starts a lane, or goes on with it.
func (p *pairing) begin(st reel.PairerState, open [][]int32, ordinal uint64) {
	p.pairer.Calls, p.pairer.Unmatched, p.pairer.TooDeep = 0, 0, 0
	p.pairer.SetState(st)
	p.open, p.calls, p.into = open, p.calls[:0], nil
	p.last, p.ordinal = st.Now, ordinal
}

// push takes the next events, whose times it may change.
func (p *pairing) push(events []reel.Event) {
	if p.clock.untimed {
		for i := range events {
			p.ordinal++
			events[i].Time = p.ordinal
		}
		p.last = p.ordinal
	} else {
		last := p.last
		for i := range events {
			t := events[i].Time
			if t >= last {
				last = t
			} else if t != 0 {
				events[i].Time = last
			}
		}
		p.last = last
	}
	p.pairer.Push(events)
}

// end takes a call that has ended.
func (p *pairing) end(c *reel.Call) {
	if c.Stack < len(p.open) && c.Depth < len(p.open[c.Stack]) {
		list := p.open[c.Stack]
		if p.ended != nil {
			p.ended(list[c.Depth], c)
		}
		p.open[c.Stack] = list[:c.Depth]
		return
	}
	if p.into != nil {
		p.into.take(c, p.clock.first)
		return
	}
	if p.merge != nil {
		first := p.clock.first
		p.merge.add(c, c.Start-min(first, c.Start), c.End-min(first, c.End))
		return
	}
	n := len(p.calls)
	if n == cap(p.calls) {
		p.calls = append(p.calls, call{})
	}
	p.calls = p.calls[:n+1]
	first := p.clock.first
	k := &p.calls[n]
	k.start, k.end, k.spent = c.Start-min(first, c.Start), c.End-min(first, c.End), spent(c.Inside, c.Flags)
	k.fn, k.row = c.Func, keyOf(c.Stack, c.Depth)
}

// mostOpen is how many open calls are looked at to see whether decoding may stop.
const mostOpen = 1000

// allBegan says whether no call that began in the i-th segment, before a time, will
// still end in it.
func (p *pairing) allBegan(l *lane, i int, before uint64) bool {
	known := p.known()
	open := p.pairer.Open()
	for _, n := range known {
		open -= n
	}
	if open > mostOpen {
		return false
	}
	first, last := l.spansOf(i)
	spans := l.spans[first:last]
	for stack, st := range p.pairer.State(known).Stacks {
		depth := int32(0)
		if stack < len(known) {
			depth = int32(known[stack])
		}
		for j := range st.Open {
			start := p.clock.rel(st.Open[j].Start)
			if start < before && !slices.ContainsFunc(spans, func(sp span) bool {
				return int(sp.stack) == stack && sp.depth == depth+int32(j) && sp.start == start
			}) {
				return false
			}
		}
	}
	return true
}

// known is how many spans are open on each stack.
func (p *pairing) known() []int {
	n := make([]int, len(p.open))
	for i := range p.open {
		n[i] = len(p.open[i])
	}
	return n
}

// byRow sorts calls, which are in order of their ends, by row and in the row by
// time. dst is overwritten.
func byRow(calls, dst []call) ([]call, []rowRange) {
	last := 0
	for i := range calls {
		last = max(last, calls[i].row.stack())
	}
	low, high := make([]uint32, last+1), make([]uint32, last+1) // depths of each stack, high exclusive
	for i := range low {
		low[i] = math.MaxUint32
	}
	for i := range calls {
		s, d := calls[i].row.stack(), uint32(calls[i].row.depth())
		low[s], high[s] = min(low[s], d), max(high[s], d+1)
	}
	base := make([]uint32, last+1) // of each stack in counts
	n := uint32(0)
	for s := range base {
		if high[s] > 0 {
			base[s] = n - low[s]
			n += high[s] - low[s]
		}
	}
	counts := make([]uint32, n+1)
	for i := range calls {
		k := calls[i].key()
		counts[base[k.stack()]+uint32(k.depth())]++
	}
	var rows []rowRange
	at := uint32(0)
	for s := range base {
		for d := low[s]; d < high[s]; d++ {
			i := base[s] + d
			if counts[i] == 0 {
				continue
			}
			rows = append(rows, rowRange{key: keyOf(s, int(d)), from: at, to: at + counts[i]})
			counts[i], at = at, at+counts[i]
		}
	}
	if cap(dst) < len(calls) {
		dst = make([]call, len(calls))
	}
	dst = dst[:len(calls)]
	for i := range calls {
		k := calls[i].key()
		c := &counts[base[k.stack()]+uint32(k.depth())]
		dst[*c] = calls[i]
		*c++
	}
	return dst, rows
}

// rowRange says which calls of a sorted list are of a row.
type rowRange struct {
	key      rowKey
	from, to uint32
}
