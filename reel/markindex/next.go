package markindex

import (
	"context"
	"sort"
)

// Next is the first item of the titles after another one in order of time, of all lanes and tracks, or with backwards the last before it. Of
// from, Start, Kind and where it is are looked at. Rows that have all that is left are passed over.
func (x *Index) Next(ctx context.Context, titles func(id uint32) bool, from *Item, backwards bool) (it Item, ok bool, err error) {
	wanted := make([]bool, len(x.titles))
	for id := 1; id < len(x.titles); id++ {
		wanted[id] = titles(uint32(id))
	}
	consider := func(c Item) (further bool) {
		if backwards {
			if less(&c, from) >= 0 {
				return true
			}
			if !ok || less(&c, &it) > 0 {
				it, ok = c, true
			}
			return false
		}
		if less(&c, from) <= 0 {
			return true
		}
		if !ok || less(&c, &it) < 0 {
			it, ok = c, true
		}
		return false
	}
	// walk goes through what begins at the times from there on, as long as it may be the nearest.
	walk := func(at []uint64, is func(i int) bool, item func(i int) Item) {
		if backwards {
			i := sort.Search(len(at), func(i int) bool { return at[i] > from.Start }) - 1
			for ; i >= 0 && (!ok || at[i] >= it.Start); i-- {
				if is(i) && !consider(item(i)) {
					return
				}
			}
			return
		}
		i := sort.Search(len(at), func(i int) bool { return at[i] >= from.Start })
		for ; i < len(at) && (!ok || at[i] <= it.Start); i++ {
			if is(i) && !consider(item(i)) {
				return
			}
		}
	}
	for n, l := range x.order {
		if n&0xff == 0 && ctx.Err() != nil {
			return it, false, ctx.Err()
		}
		for k := range l.rows {
			if r := &l.rows[k]; r.count == nil {
				walk(r.start, func(i int) bool { return wanted[r.what[i]&titleMask] }, func(i int) Item { return l.item(k, i) })
			}
		}
		walk(l.Instants.at, func(i int) bool { return wanted[l.Instants.what[i]] }, l.instant)
	}
	for n, t := range x.tracks {
		if t.Counter && wanted[t.Title] {
			walk(t.graph.at, func(int) bool { return true }, func(i int) Item { return t.told(n, i) })
		}
		for k := range t.rows {
			if r := &t.rows[k]; r.count == nil {
				walk(r.start, func(i int) bool { return wanted[r.what[i]&titleMask] }, func(i int) Item { return t.item(n, k, i) })
			}
		}
	}
	return it, ok, nil
}
