package target

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// IDRange is where the functions of one image are that are recorded. Their IDs follow one another.
type IDRange struct {
	First, Count uint32
	Image        *mapped.Image
	Arena        *Arena
	At           int // index of the first in Arena.Fns
	slot         int // and in its code's Slots, of which each has one when probes are made on the first call
}

// Take takes over the functions of the arena's images.
func (a *Arena) Take() []IDRange {
	n, slot := 0, 0
	for _, im := range a.Images {
		n += len(im.Traced) + len(im.Imports) + len(im.Hooked) + len(im.Marked)
	}
	var ranges []IDRange
	for _, im := range a.Images {
		if len(im.Traced) > 0 {
			ranges = append(ranges, IDRange{im.First, uint32(len(im.Traced)), im, a, len(a.Fns), slot})
			slot += len(im.Traced)
		}
		if len(a.Fns) == 0 && cap(im.Traced) >= n {
			a.Fns = im.Traced
		} else {
			a.Fns = append(slices.Grow(a.Fns, n-len(a.Fns)), im.Traced...)
		}
		if len(im.Imports) > 0 {
			ranges = append(ranges, IDRange{im.FirstImport, uint32(len(im.Imports)), im, a, len(a.Fns), slot})
			slot += len(im.Imports)
			a.Fns = append(a.Fns, im.Imports...)
		}
		a.Fns = append(append(a.Fns, im.Hooked...), im.Marked...)
		im.Traced, im.Imports, im.Hooked, im.Marked = nil, nil, nil, nil
	}
	return ranges
}

// FindRange returns which of ranges in the order of their IDs has an ID, and the ID's index in it; nil if none has.
func FindRange(ranges []IDRange, id uint32) (g *IDRange, k uint32) {
	i, found := slices.BinarySearchFunc(ranges, id, func(g IDRange, id uint32) int { return cmp.Compare(g.First, id) })
	if !found {
		i--
	}
	if i < 0 || id-ranges[i].First >= ranges[i].Count {
		return nil, 0
	}
	return &ranges[i], id - ranges[i].First
}

// SlotOf returns the slot of the function with that ID, and its arena; nil if there is none.
func SlotOf(ranges []IDRange, id uint32) (*stub.Slot, *Arena) {
	g, k := FindRange(ranges, id)
	if g == nil {
		return nil, nil
	}
	slots := g.Arena.Code.Slots
	if i := g.slot + int(k); i < len(slots) && slots[i].ID == id {
		return &slots[i], g.Arena
	}
	return nil, nil
}
