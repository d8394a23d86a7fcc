package timeline

import (
	"math"
	"math/bits"

	"github.com/callreel/callreel/reel"
)

// bar is a Bar in ticks.
type bar struct {
	start, end uint64
	busy       uint64
	fn         uint32
	calls      uint32
	flags      reel.CallFlags
}

const barBytes = 40

// cellShift is how many grains, as a power of two, the calls of a merged bar
// may begin in. More makes the index smaller and pictures of dense rows coarser.
const cellShift = 4

// grainOf is the binary logarithm of what counts as a pixel in a view.
func grainOf(ticks uint64, width int) uint {
	pixel := ticks / uint64(max(1, width))
	grain := uint(max(1, bits.Len64(pixel)) - 1)
	if float64(pixel) > math.Sqrt2*float64(uint64(1)<<grain) {
		grain++
	}
	return grain
}

// merger merges the bars of one row, given in order of time, into those that are
// to be seen at a grain: see View. What it makes of bars that were merged at a
// finer grain is what it makes of the calls themselves.
type merger struct {
	grain uint
	out   []bar
	lead  uint64 // time by which the function of the last bar leads the others in it
	open  bool   // the last bar may take more
}

// add takes the next bar.
func (m *merger) add(b *bar) {
	if b.end-b.start >= 1<<m.grain && b.calls == 1 {
		m.out = append(m.out, *b)
		m.open = false
		return
	}
	if m.open {
		last := &m.out[len(m.out)-1]
		cell := m.grain + cellShift
		if last.start>>cell == b.start>>cell && b.start-min(last.end, b.start) < 1<<m.grain {
			m.join(last, b)
			return
		}
	}
	m.out = append(m.out, *b)
	m.lead, m.open = b.busy, true
}

// join adds a bar to the last one. Its function is the winner of a majority vote.
func (m *merger) join(last, b *bar) {
	last.end = max(last.end, b.end)
	last.busy += b.busy
	last.flags |= b.flags
	last.calls += min(b.calls, math.MaxUint32-last.calls)
	switch {
	case last.fn == b.fn:
		m.lead += b.busy
	case m.lead >= b.busy:
		m.lead -= b.busy
	default:
		last.fn, m.lead = b.fn, b.busy-m.lead
	}
}

// addCalls takes the next calls of the row, as add does: most of the time of
// indexing is spent here.
func (m *merger) addCalls(calls []call) {
	wide, cell := uint64(1)<<m.grain, m.grain+cellShift
	out, lead := m.out, m.lead
	var last *bar // takes more
	if m.open {
		last = &out[len(out)-1]
	}
	for i := range calls {
		c := &calls[i]
		busy := c.end - c.start
		if busy >= wide {
			out, last = append(out, c.bar()), nil
			continue
		}
		if last == nil || last.start>>cell != c.start>>cell || c.start-min(last.end, c.start) >= wide {
			out = append(out, c.bar())
			last, lead = &out[len(out)-1], busy
			continue
		}
		last.end = max(last.end, c.end)
		last.busy += busy
		last.flags |= c.flags()
		last.calls += min(1, math.MaxUint32-last.calls)
		switch {
		case last.fn == c.fn:
			lead += busy
		case lead >= busy:
			lead -= busy
		default:
			last.fn, lead = c.fn, busy-lead
		}
	}
	m.out, m.lead, m.open = out, lead, last != nil
}

// addBars takes the next bars of the row, as add does.
func (m *merger) addBars(bars []bar) {
	wide, cell := uint64(1)<<m.grain, m.grain+cellShift
	for i := range bars {
		b := &bars[i]
		narrow := b.calls > 1 || b.end-b.start < wide
		if narrow && m.open {
			last := &m.out[len(m.out)-1]
			if last.start>>cell == b.start>>cell && b.start-min(last.end, b.start) < wide {
				m.join(last, b)
				continue
			}
		}
		n := len(m.out)
		if n == cap(m.out) {
			m.out = append(m.out, bar{})
		}
		m.out = m.out[:n+1]
		m.out[n] = *b
		m.lead, m.open = b.busy, narrow
	}
}

// next makes the merger ready for another row; what it has is kept.
func (m *merger) next() { m.open = false }
