package symbols

import (
	"slices"

	"github.com/callreel/callreel/object"
)

// placeFunc returns the address that stands for the start of an executable section,
// false for other sections: dwarf.Data.Place.
type placeFunc func(section int) (uint64, bool)

// linkPlace is the placeFunc of an image without DWARF. In a relocatable file only
// .text has addresses then, its offsets.
func linkPlace(im *object.Image) placeFunc {
	sections := im.Sections()
	text := slices.IndexFunc(sections, func(s object.Section) bool { return s.Name == ".text" })
	return func(k int) (uint64, bool) {
		if k < 0 || k >= len(sections) || !sections[k].Alloc() || !sections[k].Executable() {
			return 0, false
		}
		return sections[k].Addr, im.Type != object.Relocatable || im.Format != object.ELF || k == text
	}
}

// codeRegions returns the stretches of an image that hold code, sorted, disjoint,
// each at most maxRegion long: the executable sections or, in an image without
// sections, the executable segments.
func codeRegions(im *object.Image, place placeFunc) []region {
	var ranges []piece
	add := func(start, size uint64) {
		if size > 0 && size <= ^uint64(0)-start {
			ranges = append(ranges, piece{start: start, end: start + size})
		}
	}
	sections := im.Sections()
	for k := range sections {
		if start, ok := place(k); ok {
			add(start, sections[k].Size)
		}
	}
	if len(ranges) == 0 {
		for _, s := range im.Segments() {
			if s.Type == object.SegmentLoad && s.Perm&object.PermX != 0 {
				add(s.Addr, s.MemSize)
			}
		}
	}
	return cutRegions(ranges)
}

// cutRegions makes regions of ranges that may overlap.
func cutRegions(ranges []piece) []region {
	const most = 1 << 10 // pieces of one range: code is shorter than 4 TB
	var o overlay
	var regions []region
	for _, p := range o.resolve(ranges) {
		for n := 0; p.start < p.end && n < most; n++ {
			size := min(p.end-p.start, maxRegion)
			regions = append(regions, region{base: p.start, size: size})
			p.start += size
		}
	}
	return regions
}

// nextRegion returns the index of the region that holds an address, or of the first
// one above it.
func nextRegion(regions []region, addr uint64) int {
	k, _ := slices.BinarySearchFunc(regions, addr, func(r region, addr uint64) int {
		switch {
		case r.base > addr:
			return 1
		case addr-r.base < r.size:
			return 0
		}
		return -1
	})
	return k
}
