package timeline

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// rowMergers merge calls of all rows, given in order of their ends, at a grain.
type rowMergers struct {
	grain  uint
	stacks [][]rowMerger // by stack and depth
	calls  int
}

// rowMerger is a row's. It does what merger does, of calls alone.
type rowMerger struct {
	bars []bar
	lead uint64
	open bool
}

// keptBars is how many bars there may be room for in rows that are used again.
const keptBars = 1 << 18

// begin makes the mergers ready for another segment.
func (m *rowMergers) begin(grain uint) {
	m.grain, m.calls = grain, 0
	kept := 0
	for s := range m.stacks {
		for i := range m.stacks[s] {
			kept += cap(m.stacks[s][i].bars)
		}
		m.stacks[s] = m.stacks[s][:0]
	}
	if kept > keptBars {
		m.stacks = nil
	}
}

// row returns the merger of a row.
func (m *rowMergers) row(stack, depth int) *rowMerger {
	for len(m.stacks) <= stack {
		m.stacks = append(m.stacks, nil)
	}
	rows := m.stacks[stack]
	for len(rows) <= depth {
		if n := len(rows); n < cap(rows) {
			rows = rows[:n+1]
			rows[n].bars, rows[n].open = rows[n].bars[:0], false
		} else {
			rows = append(rows, rowMerger{})
		}
	}
	m.stacks[stack] = rows
	return &rows[depth]
}

// add takes the next call, with times from the recording's start. Most of the
// time of indexing that is not decoding or pairing is spent here.
func (m *rowMergers) add(c *reel.Call, start, end uint64) {
	var r *rowMerger
	if c.Stack < len(m.stacks) && c.Depth < len(m.stacks[c.Stack]) {
		r = &m.stacks[c.Stack][c.Depth]
	} else {
		r = m.row(c.Stack, c.Depth)
	}
	m.calls++
	busy := end - start
	narrow := busy < 1<<m.grain
	if r.open && narrow {
		last := &r.bars[len(r.bars)-1]
		if cell := m.grain + cellShift; last.start>>cell == start>>cell && start-min(last.end, start) < 1<<m.grain {
			last.end = max(last.end, end)
			last.busy += busy
			last.flags |= c.Flags
			last.calls += min(1, math.MaxUint32-last.calls)
			switch {
			case last.fn == c.Func:
				r.lead += busy
			case r.lead >= busy:
				r.lead -= busy
			default:
				last.fn, r.lead = c.Func, busy-r.lead
			}
			return
		}
	}
	n := len(r.bars)
	if n == cap(r.bars) {
		r.bars = append(r.bars, bar{})
	}
	r.bars = r.bars[:n+1]
	b := &r.bars[n]
	b.start, b.end, b.busy, b.fn, b.calls, b.flags = start, end, busy, c.Func, 1, c.Flags
	r.lead, r.open = busy, narrow
}

// level gathers what was merged into dst.
func (m *rowMergers) level(dst *level) {
	n := 0
	for s := range m.stacks {
		for d := range m.stacks[s] {
			n += len(m.stacks[s][d].bars)
		}
	}
	dst.grain, dst.rows, dst.bars = m.grain, dst.rows[:0], slices.Grow(dst.bars[:0], n)
	for s := range m.stacks {
		for d := range m.stacks[s] {
			if bars := m.stacks[s][d].bars; len(bars) > 0 {
				from := uint32(len(dst.bars))
				dst.bars = append(dst.bars, bars...)
				dst.rows = append(dst.rows, levelRow{keyOf(s, d), from, uint32(len(dst.bars))})
			}
		}
	}
}
