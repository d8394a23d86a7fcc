package markindex

import (
	"cmp"
	"slices"
	"sort"
)

// End is where a flow leaves or arrives. Time is in ticks.
type End struct {
	Time uint64
	LaneKey
}

// Flow is an arrow.
type Flow struct {
	From, To End
	Title    uint32
	ID       uint64
}

const flowSize = 72 // bytes

type flows struct {
	list []Flow   // by From
	byTo []uint32 // indices by To
}

func (x *flows) finish() {
	slices.SortStableFunc(x.list, func(a, b Flow) int { return cmp.Compare(a.From.Time, b.From.Time) })
	x.list = slices.Clip(x.list)
	x.byTo = make([]uint32, len(x.list))
	for i := range x.byTo {
		x.byTo[i] = uint32(i)
	}
	slices.SortStableFunc(x.byTo, func(a, b uint32) int { return cmp.Compare(x.list[a].To.Time, x.list[b].To.Time) })
}

// Flows are those that leave or arrive from one tick until another, in order of leaving, and whether there are more than most, which are left
// out. With a lane they are its own.
func (x *Index) Flows(from, to uint64, lane *LaneKey, most int) (list []Flow, more bool) {
	const looked = 1 << 20 // at others' flows
	all := x.flows.list
	of := func(e *End) bool {
		return e.Time >= from && e.Time < to && (lane == nil || e.LaneKey == *lane)
	}
	seen := 0
	i := sort.Search(len(all), func(i int) bool { return all[i].From.Time >= from })
	for ; i < len(all) && all[i].From.Time < to; i++ {
		if seen++; seen > looked || len(list) > most {
			return list[:min(len(list), most)], true
		}
		if of(&all[i].From) {
			list = append(list, all[i])
		}
	}
	k := sort.Search(len(all), func(k int) bool { return all[x.flows.byTo[k]].To.Time >= from })
	for ; k < len(all) && all[x.flows.byTo[k]].To.Time < to; k++ {
		if seen++; seen > looked || len(list) > most {
			return list[:min(len(list), most)], true
		}
		if f := &all[x.flows.byTo[k]]; of(&f.To) && !of(&f.From) {
			list = append(list, *f)
		}
	}
	slices.SortStableFunc(list, func(a, b Flow) int { return cmp.Compare(a.From.Time, b.From.Time) })
	return list[:min(len(list), most)], len(list) > most
}
