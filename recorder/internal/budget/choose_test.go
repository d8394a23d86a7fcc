package budget

import (
	"slices"
	"testing"
)

func ids(list []Function) (ids []uint32) {
	for _, f := range list {
		ids = append(ids, f.ID)
	}
	slices.Sort(ids)
	return ids
}

func TestWhatCostsMostAndTellsLeastIsLeftOut(t *testing.T) {
	list := []Function{
		{ID: 1, Calls: 10, Half: 5e6, P99: 6e6, Max: 7e6},            // the request
		{ID: 2, Calls: 1_000, Half: 40_000, P99: 9_000, Max: 50_000}, // a caller
		{ID: 3, Calls: 1_000_000, Half: 50, P99: 90, Max: 400},       // a leaf
		{ID: 4, Calls: 900_000, Half: 70, P99: 90, Max: 2_000_000},   // one that was slow once
		{ID: 5, Calls: 40_000, Half: 600, P99: 900, Max: 4000},
		{ID: 6, Calls: 50_000, Half: 30, P99: 90, Max: 400},
	}
	for _, c := range []struct {
		allowed float64
		want    []uint32
	}{
		{1e9, []uint32{1, 2, 3, 4, 5, 6}},
		{1_000_000, []uint32{1, 2, 4, 5, 6}},
		{100_000, []uint32{1, 2, 5, 6}},
		{60_000, []uint32{1, 2, 5}},
		{100, []uint32{1}},
		{0, nil},
	} {
		on, off := Choose(list, c.allowed)
		if got := ids(on); !slices.Equal(got, c.want) {
			t.Errorf("%v calls allowed: %v are on, want %v", c.allowed, got, c.want)
		}
		if len(on)+len(off) != len(list) {
			t.Errorf("%v calls allowed: %d on and %d off, of %d", c.allowed, len(on), len(off), len(list))
		}
	}
}

func TestWhatIsNamedStaysOn(t *testing.T) {
	list := []Function{{ID: 1, Calls: 1_000_000, Half: 10, Kept: true}, {ID: 2, Calls: 10, Half: 10}, {ID: 3, Calls: 241, Half: 10}}
	on, off := Choose(list, 1000)
	if !slices.Equal(ids(on), []uint32{1, 2}) || !slices.Equal(ids(off), []uint32{3}) {
		t.Errorf("on %v, off %v", ids(on), ids(off))
	}
	if calls, _ := Shares(on, off); calls < 0.9997 || calls > 0.9998 {
		t.Errorf("%v of the calls are recorded", calls)
	}
}
