package viewer

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/markindex"
	"github.com/callreel/callreel/reel/timeline"
)

// Rows of blocks of api/view.
const (
	spanRow    = 1 << 31
	stepRow    = 3 << 30
	instantRow = math.MaxUint32 - 1
	counterRow = math.MaxUint32 - 2
)

// columnBlock is a column of a counter, its time in nanoseconds.
type columnBlock struct {
	start uint64
	markindex.Column
}

// spans reads LANE:FIRST:COUNT with commas between: rows of spans of lanes and tracks. Those that there are not are left out.
func (q *query) spans(m *marked, width int) []timeline.LaneRows {
	text := q.values.Get("spans")
	if text == "" || m == nil {
		return nil
	}
	parts := strings.SplitN(text, ",", maxLanes+1)
	if len(parts) > maxLanes {
		q.fail("spans: at most %d are answered at once", maxLanes)
		return nil
	}
	list, total := make([]timeline.LaneRows, 0, len(parts)), 0
	for _, part := range parts {
		numbers := strings.Split(part, ":")
		if len(numbers) != 3 {
			q.fail("spans: %.40q is not LANE:FIRST:COUNT", part)
			return nil
		}
		lane, first, count := q.number("spans", numbers[0]), q.number("spans", numbers[1]), q.number("spans", numbers[2])
		if q.err != nil {
			return nil
		}
		first, count = min(first, markindex.MaxRows), min(count, markindex.MaxRows)
		total += int(count) + 1
		list = append(list, timeline.LaneRows{Lane: lane, First: int(first), Count: int(count)})
	}
	if total > 2*maxRows || total*width > 2*maxBars {
		q.fail("spans: %d rows of %d pixels are more than is answered at once", total, width)
		return nil
	}
	return list
}

// blocks are the rows of what the program said that are to be seen in a range, in nanoseconds.
func (m *marked) blocks(tl *timeline.Timeline, rows []timeline.LaneRows, from, to uint64, width int) []viewBlock {
	if m == nil || len(rows) == 0 || from >= to {
		return nil
	}
	first, last := tl.Tick(from), tl.Tick(to)
	grain := markindex.Grain(last-min(first, last), width)
	var out []viewBlock
	add := func(lane uint32, row int, bars []markindex.Bar) {
		if len(bars) > 0 {
			out = append(out, viewBlock{lane: lane, row: row, bars: barsOf(tl, bars)})
		}
	}
	for _, r := range rows {
		if l := m.lane(r.Lane); l != nil {
			for _, x := range l.SpanRows(r.First, r.Count, first, last, grain) {
				add(r.Lane, spanRow+x.Row, x.Bars)
			}
			add(r.Lane, instantRow, l.InstantTicks(first, last, grain))
			continue
		}
		i := m.track(r.Lane)
		if i < 0 {
			continue
		}
		t := m.x.Tracks()[i]
		if t.Counter {
			var columns []columnBlock
			for _, c := range t.Columns(first, last, grain) {
				columns = append(columns, columnBlock{tl.NS(c.Start), c})
			}
			if len(columns) > 0 {
				out = append(out, viewBlock{lane: r.Lane, row: counterRow, columns: columns})
			}
			continue
		}
		for _, x := range t.SpanRows(r.First, r.Count, first, last, grain) {
			add(r.Lane, spanRow+x.Row, x.Bars)
		}
		for row := r.First; row < r.First+r.Count; row++ {
			add(r.Lane, stepRow+row, t.StepTicks(row, first, last, grain))
		}
	}
	return out
}

func barsOf(tl *timeline.Timeline, bars []markindex.Bar) []timeline.Bar {
	out := make([]timeline.Bar, len(bars))
	for i := range bars {
		b := &bars[i]
		start, end := tl.NS(b.Start), tl.NS(b.End)
		x := timeline.Bar{Start: start, Duration: end - min(start, end), Func: b.Title, Calls: b.Count}
		x.Busy = x.Duration
		if b.Count > 1 && b.Flags&markindex.Several == 0 {
			x.Busy = min(x.Duration, tl.NS(b.Start+b.Busy)-start)
		}
		x.Flags = reel.CallFlags(b.Flags) // the page reads them as what they are
		out[i] = x
	}
	return out
}

func (b *viewBuffer) float(v float64) {
	*b = binary.LittleEndian.AppendUint64(*b, math.Float64bits(v))
}

func (b *viewBuffer) counter(k *viewBlock) {
	b.u32(k.lane)
	b.u32(counterRow)
	b.u32(uint32(len(k.columns)))
	b.u32(0)
	for i := range k.columns {
		b.f64(k.columns[i].start)
	}
	for i := range k.columns {
		b.float(k.columns[i].Min)
	}
	for i := range k.columns {
		b.float(k.columns[i].Max)
	}
	for i := range k.columns {
		b.float(k.columns[i].Last)
	}
	for i := range k.columns {
		b.u32(uint32(min(k.columns[i].Count, math.MaxUint32)))
	}
	b.pad()
}
