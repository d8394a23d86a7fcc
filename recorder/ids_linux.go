package recorder

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/probe"
)

// idRange is where the functions of one image are that are recorded. Their IDs follow one another.
type idRange struct {
	first, count uint32
	image        *mapped.Image
	arena        *arena
	at           int // index of the first in arena.fns
	slot         int // and in its code's Slots, of which each has one when probes are made on the first call
}

// take takes over the functions of the arena's images.
func (a *arena) take() []idRange {
	n, slot := 0, 0
	for _, im := range a.images {
		n += len(im.Traced) + len(im.Guarded)
	}
	var ranges []idRange
	for _, im := range a.images {
		if len(im.Traced) > 0 {
			ranges = append(ranges, idRange{im.First, uint32(len(im.Traced)), im, a, len(a.fns), slot})
			slot += len(im.Traced)
		}
		if len(a.fns) == 0 && cap(im.Traced) >= n {
			a.fns = im.Traced
		} else {
			a.fns = append(slices.Grow(a.fns, n-len(a.fns)), im.Traced...)
		}
		a.fns = append(a.fns, im.Guarded...)
		im.Traced, im.Guarded = nil, nil
	}
	return ranges
}

// find returns which of ranges in the order of their IDs has an ID, and the ID's index in it; nil if none has.
func find(ranges []idRange, id uint32) (g *idRange, k uint32) {
	i, found := slices.BinarySearchFunc(ranges, id, func(g idRange, id uint32) int { return cmp.Compare(g.first, id) })
	if !found {
		i--
	}
	if i < 0 || id-ranges[i].first >= ranges[i].count {
		return nil, 0
	}
	return &ranges[i], id - ranges[i].first
}

// slotOf returns the slot of the function with that ID, and its arena; nil if there is none.
func slotOf(ranges []idRange, id uint32) (*probe.Slot, *arena) {
	g, k := find(ranges, id)
	if g == nil {
		return nil, nil
	}
	if i := g.slot + int(k); i < len(g.arena.code.Slots) && g.arena.code.Slots[i].ID == id {
		return &g.arena.code.Slots[i], g.arena
	}
	return nil, nil
}
