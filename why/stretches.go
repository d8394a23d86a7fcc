package why

import (
	"cmp"
	"slices"
)

// longerHalf leaves the longer half of stretches, in order of time.
func longerHalf(list []stretch) []stretch {
	lengths := make([]uint64, len(list))
	for i := range list {
		lengths[i] = list[i].To - list[i].From
	}
	slices.Sort(lengths)
	least, left := lengths[len(lengths)/2], len(list)/2
	kept := list[:0]
	for _, s := range list {
		if s.To-s.From >= least && left > 0 {
			kept = append(kept, s)
			left--
		}
	}
	return kept
}

// longestFirst sorts stretches.
func longestFirst(list []stretch) {
	slices.SortStableFunc(list, func(a, b stretch) int { return cmp.Compare(b.To-b.From, a.To-a.From) })
}
