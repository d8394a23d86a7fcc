package crash

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/unwind"
)

// lay makes the map of what is mapped where that walks go by. What the report says goes before
// what images' files say, and where neither says anything an image is taken for code that no file
// is behind, and memory outside of images for a possible stack.
func (w *walking) lay() {
	r := w.report
	var list unwind.Map
	add := func(from, to uint64, exec, write bool) {
		for from < to {
			// Cut where images begin and end.
			m := unwind.Mapping{Start: from, End: to, Exec: exec, Write: write}
			k := imageFrom(r.Images, from)
			if k < len(r.Images) {
				switch im := r.Images[k]; {
				case im.Load > from:
					m.End = min(to, im.Load)
				case im.end() <= from: // its size isn't known
					if k+1 < len(r.Images) {
						m.End = min(to, r.Images[k+1].Load)
					}
				default:
					m.End = min(to, im.end())
					if im.unwind != nil {
						m.Image = im.unwind
					}
				}
			}
			list = append(list, m)
			from = m.End
		}
	}
	if len(r.maps) > 0 {
		for _, m := range r.maps {
			add(m.Start, m.End, m.exec, m.write)
		}
	} else {
		w.layImages(add)
	}
	// Memory that is in the report is there, whatever the list of mappings says.
	slices.SortFunc(list, func(a, b unwind.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	list = withMemory(list, r.memory.Ranges())
	w.images = list
	arch := r.arch
	if arch == unwind.ARM64 && r.apple() {
		arch = unwind.ARM64Darwin
	}
	w.walker = unwind.NewWalker(arch, list, unwind.Options{MaxFrames: w.files.MaxFrames})
	w.short = unwind.NewWalker(arch, list, unwind.Options{MaxFrames: min(leastFrames, w.files.MaxFrames)})
}

// imageFrom returns the index of the image that holds an address or is the first behind it.
func imageFrom(images []*Image, addr uint64) int {
	k, found := slices.BinarySearchFunc(images, addr, func(im *Image, addr uint64) int { return cmp.Compare(im.Load, addr) })
	if !found && k > 0 && addr < images[k-1].end() {
		k--
	}
	return k
}

// layImages lays out images by their segments, or whole.
func (w *walking) layImages(add func(from, to uint64, exec, write bool)) {
	r := w.report
	for k, im := range r.Images {
		end := im.end()
		if im.Size == 0 {
			continue
		}
		if k+1 < len(r.Images) {
			end = min(end, r.Images[k+1].Load)
		}
		if im.file == nil {
			add(im.Load, end, true, true)
			continue
		}
		at := im.Load
		segments := slices.Clone(im.file.Segments())
		slices.SortStableFunc(segments, func(a, b object.Segment) int { return cmp.Compare(a.Addr+im.slide, b.Addr+im.slide) })
		for _, s := range segments {
			from := max(s.Addr+im.slide, at)
			to := min(from+s.MemSize, end)
			if s.Type == object.SegmentLoad && from < to && s.Addr+im.slide >= im.Load {
				add(from, to, s.Perm&object.PermX != 0, s.Perm&object.PermW != 0)
				at = to
			}
		}
	}
}

// withMemory adds the memory that a report holds where nothing is mapped by the list, which is
// sorted and disjoint.
func withMemory(list unwind.Map, ranges []Range) unwind.Map {
	var more unwind.Map
	k := 0
	for _, m := range ranges {
		at := m.Start
		for k < len(list) && list[k].End <= at {
			k++
		}
		for j := k; at < m.End; j++ {
			end := m.End
			if j < len(list) {
				end = min(end, list[j].Start)
			}
			if at < end {
				more = append(more, unwind.Mapping{Start: at, End: end, Write: true})
			}
			if j >= len(list) {
				break
			}
			at = max(at, list[j].End)
		}
	}
	list = append(list, more...)
	slices.SortFunc(list, func(a, b unwind.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	return list
}
