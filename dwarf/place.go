package dwarf

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"

	"github.com/callreel/callreel/object"
)

// placeGap keeps functions of neighbouring sections apart.
const placeGap = 16

// place gives the executable sections of a relocatable file places of their own.
func (d *Data) place() {
	if d.image.Type != object.Relocatable {
		return
	}
	sections := d.image.Sections()
	d.places = make([]uint64, len(sections))
	first := slices.IndexFunc(sections, isText)
	next := uint64(0)
	put := func(k int) {
		s := &sections[k]
		if s.Addr != 0 || !s.Alloc() || !s.Executable() {
			return // Mach-O gives sections addresses in relocatable files too
		}
		align := min(max(s.Align, placeGap), 4096)
		align = 1 << (63 - bits.LeadingZeros64(align)) // a crafted one need not be a power of 2
		at := (next + align - 1) &^ (align - 1)
		if at < next || s.Size > 1<<62 || at+s.Size < at {
			return
		}
		d.places[k], next = at, at+s.Size
		if k != first || s.Size > 0 {
			next += placeGap
		}
	}
	if first >= 0 {
		put(first)
	}
	for k := range sections {
		if k != first {
			put(k)
		}
	}
}

func isText(s object.Section) bool { return s.Name == ".text" }

// Place returns the address that stands for the start of a section (its index in
// the image's Sections) in Ranges and Rows: for relocatable files 0 for .text, and
// places above it for the other executable sections; otherwise the section's link
// address. It is false for sections that are not executable.
func (d *Data) Place(section int) (uint64, bool) {
	sections := d.image.Sections()
	if section < 0 || section >= len(sections) || !sections[section].Alloc() || !sections[section].Executable() {
		return 0, false
	}
	if d.places == nil {
		return sections[section].Addr, true
	}
	return sections[section].Addr + d.places[section], true
}

// findCode collects where code can be: the executable sections or, where none is
// known to be, the executable segments.
func (d *Data) findCode() {
	sections := d.image.Sections()
	for k := range sections {
		if low, ok := d.Place(k); ok {
			d.addCode(low, sections[k].Size)
		}
	}
	if len(d.code) == 0 {
		for _, s := range d.image.Segments() {
			if s.Type == object.SegmentLoad && s.Perm&object.PermX != 0 {
				d.addCode(s.Addr, s.MemSize)
			}
		}
	}
	slices.SortFunc(d.code, func(a, b Range) int { return cmp.Compare(a.Low, b.Low) })
	merged := d.code[:0]
	for _, c := range d.code {
		if n := len(merged); n > 0 && c.Low <= merged[n-1].High {
			merged[n-1].High = max(merged[n-1].High, c.High)
		} else {
			merged = append(merged, c)
		}
	}
	d.code = merged
}

func (d *Data) addCode(low, size uint64) {
	if high := low + size; high > low {
		d.code = append(d.code, Range{low, high})
	}
}

// regionOf returns the piece of code that holds the address.
func (d *Data) regionOf(addr uint64) (Range, bool) {
	k := sort.Search(len(d.code), func(k int) bool { return d.code[k].High > addr })
	if k == len(d.code) || d.code[k].Low > addr {
		return Range{}, false
	}
	return d.code[k], true
}
