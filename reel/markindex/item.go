package markindex

import (
	"cmp"
	"sort"

	"github.com/callreel/callreel/reel"
)

// Kind says what an Item is.
type Kind uint8

// The kinds.
const (
	SpanItem Kind = iota + 1
	AsyncItem
	InstantItem
	ValueItem // of a counter
)

// Item is one of them.
type Item struct {
	Kind Kind
	// Lane is of spans and instants; Track, its index, of others, else -1.
	Lane  LaneKey
	Track int
	Row   int
	// Start and End are ticks.
	Start, End uint64
	Title      uint32
	Flags      Flags
	// Count is how many spans it is of, if there was no room to tell them apart.
	Count  uint32
	ID     uint64 // of asynchronous spans
	Thread uint32 // key of the one that told of it; 0 if that isn't known
	Value  float64
}

// item is the i-th of a row.
func (r *row) item(i, at int) Item {
	it := Item{Row: at, Track: -1, Start: r.start[i], End: r.end[i], Title: r.what[i] & titleMask, Flags: Flags(r.what[i] >> titleBits), Count: 1}
	if r.count != nil {
		it.Count = r.count[i]
	}
	if r.id != nil {
		it.ID = r.id[i]
	}
	if r.thread != nil {
		it.Thread = r.thread[i]
	}
	return it
}

func (l *Lane) item(r, i int) Item {
	it := l.rows[r].item(i, r)
	it.Kind, it.Lane = SpanItem, l.LaneKey
	if l.Thread != 0 {
		it.Thread = l.Thread
	}
	return it
}

func (t *Track) item(track, r, i int) Item {
	it := t.rows[r].item(i, r)
	it.Kind, it.Track = AsyncItem, track
	return it
}

func (l *Lane) instant(i int) Item {
	it := Item{Kind: InstantItem, Lane: l.LaneKey, Track: -1, Start: l.Instants.at[i], End: l.Instants.at[i], Title: l.Instants.what[i], Count: 1, Thread: l.Thread}
	if l.Instants.id != nil {
		it.Thread = l.Instants.id[i]
	}
	return it
}

func (t *Track) told(track, i int) Item {
	it := Item{Kind: ValueItem, Track: track, Start: t.graph.at[i], End: t.graph.at[i], Title: t.Title, Value: t.graph.value[i], Count: 1}
	if i+1 < len(t.graph.at) {
		it.End = t.graph.at[i+1]
	}
	return it
}

// SpanAt is the span of a row that a tick is in, or that is no further from it than near.
func (l *Lane) SpanAt(row int, tick, near uint64) (it Item, ok bool) {
	if row < 0 || row >= len(l.rows) {
		return it, false
	}
	if i := l.rows[row].at(tick, near); i >= 0 {
		return l.item(row, i), true
	}
	return it, false
}

// SpanAt is SpanAt of the track with that index.
func (x *Index) SpanAt(track, row int, tick, near uint64) (it Item, ok bool) {
	if track < 0 || track >= len(x.tracks) || row < 0 || row >= len(x.tracks[track].rows) {
		return it, false
	}
	if i := x.tracks[track].rows[row].at(tick, near); i >= 0 {
		return x.tracks[track].item(track, row, i), true
	}
	return it, false
}

// InstantAt is the instant nearest to a tick, no further than near.
func (l *Lane) InstantAt(tick, near uint64) (it Item, ok bool) {
	if i := l.Instants.nearest(tick, near); i >= 0 {
		return l.instant(i), true
	}
	return it, false
}

// ValueAt is what a counter was at a tick.
func (x *Index) ValueAt(track int, tick uint64) (it Item, ok bool) {
	if track < 0 || track >= len(x.tracks) {
		return it, false
	}
	g := &x.tracks[track].graph
	i := sort.Search(len(g.at), func(i int) bool { return g.at[i] > tick }) - 1
	if i < 0 {
		return it, false
	}
	return x.tracks[track].told(track, i), true
}

// nearest is the index of the point nearest to a tick, -1 if that is further than near.
func (p *points) nearest(tick, near uint64) int {
	i := sort.Search(len(p.at), func(i int) bool { return p.at[i] >= tick })
	best, away := -1, near
	for _, k := range [...]int{i, i - 1} {
		if k < 0 || k >= len(p.at) {
			continue
		}
		if off := max(tick, p.at[k]) - min(tick, p.at[k]); off <= away && (best < 0 || off < away) {
			best, away = k, off
		}
	}
	return best
}

// Steps are the steps of an asynchronous span.
func (x *Index) Steps(it *Item) (list []reel.SpanStep) {
	if it.Kind != AsyncItem || it.Row >= len(x.tracks[it.Track].steps) {
		return nil
	}
	p := &x.tracks[it.Track].steps[it.Row]
	i := sort.Search(len(p.at), func(i int) bool { return p.at[i] >= it.Start })
	for ; i < len(p.at) && p.at[i] <= it.End; i++ {
		list = append(list, reel.SpanStep{Time: p.at[i], Marker: p.what[i], Thread: p.id[i]})
	}
	return list
}

// less orders items by time, and those of the same time by where they are.
func less(a, b *Item) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Track, b.Track), cmp.Compare(a.Lane.Goroutine, b.Lane.Goroutine),
		cmp.Compare(a.Lane.Thread, b.Lane.Thread), cmp.Compare(a.Row, b.Row))
}
