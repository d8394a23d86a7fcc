package markindex

import (
	"context"
	"sort"
)

// Way is where to go from an item.
type Way uint8

// The ways.
const (
	Before Way = iota // the one before it in its row; of instants and a counter's values, the one before it
	After
	Around // the innermost span around it
	Within // the first span within it
	Longest
)

// Near is the item that is next to another one that way; ok is false if there is none. Rows that have all that is left are passed over.
func (x *Index) Near(ctx context.Context, it *Item, way Way) (to Item, ok bool, err error) {
	if way == Longest {
		return x.longest(ctx, it)
	}
	rows, at := x.rowsOf(it)
	switch {
	case way == Around && it.Kind != ValueItem:
		for r := range rows {
			i := sort.Search(len(rows[r].start), func(i int) bool { return rows[r].start[i] > it.Start }) - 1
			if i < 0 || rows[r].count != nil || it.Kind != InstantItem && r == it.Row || rows[r].end[i] < it.End {
				continue
			}
			if c := at(r, i); (c.Start < it.Start || c.End > it.End || r < it.Row || it.Kind == InstantItem) && (!ok || c.Start >= to.Start) {
				to, ok = c, true
			}
		}
	case way == Within && it.Kind == SpanItem:
		for r := range rows {
			i := sort.Search(len(rows[r].start), func(i int) bool { return rows[r].start[i] >= it.Start })
			if i == len(rows[r].start) || rows[r].count != nil || r == it.Row || rows[r].end[i] > it.End {
				continue
			}
			if c := at(r, i); (c.Start > it.Start || c.End < it.End || r > it.Row) && (!ok || c.Start < to.Start) {
				to, ok = c, true
			}
		}
	case way == Before || way == After:
		to, ok = x.beside(it, way)
	}
	return to, ok, ctx.Err()
}

// rowsOf are the rows that spans around an item are in, and what makes items of them.
func (x *Index) rowsOf(it *Item) ([]row, func(r, i int) Item) {
	if it.Track >= 0 && it.Track < len(x.tracks) {
		return nil, nil // asynchronous spans don't lie within each other
	}
	l := x.lanes[it.Lane]
	if l == nil {
		return nil, nil
	}
	return l.rows, l.item
}

// beside is the item before or after another one in its row.
func (x *Index) beside(it *Item, way Way) (to Item, ok bool) {
	step := 1
	if way == Before {
		step = -1
	}
	find := func(at []uint64) (int, bool) {
		i := sort.Search(len(at), func(i int) bool { return at[i] >= it.Start })
		if i < len(at) && at[i] == it.Start {
			i += step
		} else if way == Before {
			i--
		}
		return i, i >= 0 && i < len(at)
	}
	l := x.lanes[it.Lane]
	switch {
	case it.Track >= 0 && it.Track < len(x.tracks):
		t := x.tracks[it.Track]
		if t.Counter {
			if i, ok := find(t.graph.at); ok {
				return t.told(it.Track, i), true
			}
		} else if it.Row < len(t.rows) {
			if i, ok := find(t.rows[it.Row].start); ok {
				return t.item(it.Track, it.Row, i), true
			}
		}
	case l == nil:
	case it.Kind == InstantItem:
		if i, ok := find(l.Instants.at); ok {
			return l.instant(i), true
		}
	case it.Row < len(l.rows):
		if i, ok := find(l.rows[it.Row].start); ok {
			return l.item(it.Row, i), true
		}
	}
	return to, false
}

// longest is the longest span of a title, of a counter its greatest value. Those that aren't whole don't count.
func (x *Index) longest(ctx context.Context, it *Item) (to Item, ok bool, err error) {
	look := func(rows []row, item func(r, i int) Item) {
		for r := range rows {
			if rows[r].count != nil {
				continue
			}
			for i, w := range rows[r].what {
				if w == it.Title && (!ok || rows[r].end[i]-rows[r].start[i] > to.End-to.Start) {
					to, ok = item(r, i), true
				}
			}
		}
	}
	switch it.Kind {
	case SpanItem:
		for n, l := range x.order {
			if n&0xff == 0 && ctx.Err() != nil {
				return to, false, ctx.Err()
			}
			look(l.rows, l.item)
		}
	case AsyncItem:
		for k, t := range x.tracks {
			look(t.rows, func(r, i int) Item { return t.item(k, r, i) })
		}
	case ValueItem:
		if it.Track < 0 || it.Track >= len(x.tracks) {
			break
		}
		t := x.tracks[it.Track]
		for i, v := range t.graph.value {
			if !ok || v > to.Value {
				to, ok = t.told(it.Track, i), true
			}
		}
	}
	return to, ok, ctx.Err()
}
