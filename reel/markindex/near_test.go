package markindex

import (
	"context"
	"math"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// What is next to an item is what a look at all items finds.
func TestNearIsFoundAmongAll(t *testing.T) {
	x, err := Build(context.Background(), randomReel(t, 5, 400), nil)
	realtest.Must(t, err)
	var all []Item
	for _, l := range x.order {
		for r := range l.rows {
			for i := range l.rows[r].start {
				if l.rows[r].count == nil {
					all = append(all, l.item(r, i))
				}
			}
		}
		for i := range l.Instants.at {
			all = append(all, l.instant(i))
		}
	}
	for k, track := range x.tracks {
		for r := range track.rows {
			for i := range track.rows[r].start {
				if track.rows[r].count == nil {
					all = append(all, track.item(k, r, i))
				}
			}
		}
		for i := range track.graph.at {
			all = append(all, track.told(k, i))
		}
	}
	found := map[Way]int{}
	for i := range all {
		it := &all[i]
		near := func(way Way) *Item {
			to, ok, err := x.Near(context.Background(), it, way)
			if realtest.Must(t, err); !ok {
				return nil
			}
			found[way]++
			return &to
		}
		if a := near(Around); a != nil {
			if a.Kind != SpanItem || a.Lane != it.Lane || a.Start > it.Start || a.End < it.End {
				t.Fatalf("around %+v is %+v", it, a)
			}
			for k := range all {
				if b := &all[k]; b.Kind == SpanItem && b.Lane == it.Lane && b.Start > a.Start && b.Start < it.Start && b.End > it.End {
					t.Fatalf("around %+v is not %+v but %+v", it, a, b)
				}
			}
		}
		if a := near(Within); a != nil {
			if a.Kind != SpanItem || a.Lane != it.Lane || a.Start < it.Start || a.End > it.End || *a == *it {
				t.Fatalf("within %+v is %+v", it, a)
			}
		}
		for _, way := range []Way{Before, After} {
			a := near(way)
			for k := range all {
				b := &all[k]
				if b.Kind != it.Kind || b.Lane != it.Lane || b.Track != it.Track || b.Row != it.Row {
					continue
				}
				between := way == After && b.Start > it.Start && (a == nil || b.Start < a.Start) || way == Before && b.Start < it.Start && (a == nil || b.Start > a.Start)
				if between {
					t.Fatalf("%d of %+v is %+v, not %+v", way, it, a, b)
				}
			}
		}
		if a := near(Longest); it.Kind == SpanItem || it.Kind == AsyncItem {
			most := uint64(0)
			for k := range all {
				if b := &all[k]; b.Kind == it.Kind && b.Title == it.Title && b.Flags == 0 {
					most = max(most, b.End-b.Start)
				}
			}
			if a != nil && (a.Title != it.Title || a.End-a.Start != most) {
				t.Fatalf("the longest like %+v is %+v, not of %d", it, a, most)
			}
		} else if it.Kind == ValueItem {
			if most := x.tracks[it.Track].Max; a.Value != most && !math.IsNaN(most) {
				t.Fatalf("the greatest of %+v is %v", it, a.Value)
			}
		}
	}
	for way, n := range found {
		t.Logf("%d: %d", way, n)
	}
	if len(found) != 5 {
		t.Errorf("found %v", found)
	}
}
