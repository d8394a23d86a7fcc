package plan

import (
	"slices"

	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// function is an entry chunk with the parts that were joined to it: a range of planning.parts, the entry first.
type function struct {
	from, n int32
	why     Reason
}

// partsOf are the indexes of a function's chunks, the entry's first.
func (im *Image) partsOf(f *function) []int32 { return im.parts[f.from:][:f.n] }

func (im *Image) entryOf(f *function) *chunk { return &im.chunks[im.parts[f.from]] }

// isPart says whether a chunk can't be a function of its own.
func (c *chunk) isPart() bool {
	return c.inner || c.cold
}

// join groups chunks into functions. Parts belong to whom jumps into them and to whom they jump back into; the name
// decides only where no jump does. A group with two functions in it is a body that they share.
func (im *Image) join() []function {
	for i := range im.chunks {
		c := &im.chunks[i]
		for _, to := range im.jumpsOut(i) {
			k := im.chunkAt(to)
			if k < 0 || k == i {
				continue
			}
			d := &im.chunks[k]
			switch {
			case d.isPart(), c.isPart() && to != d.start:
				im.unite(i, k)
			case to != d.start && c.names.n == 0 && im.jumps(k, c.start):
				// Cold code with a fresh frame that has lost its name: each jumps to the other, and back into the middle.
				c.inner = true
				im.unite(i, k)
			}
		}
	}
	im.findSharedZones()
	im.adoptByName()
	for i := range im.chunks {
		im.chunks[i].owner = im.group(i)
	}
	return im.split()
}

// group returns the chunk that stands for the group of chunk i: the first, or the one that has adopted it.
func (im *Image) group(i int) int32 {
	for {
		owner := im.chunks[i].owner
		if owner == int32(i) {
			return owner
		}
		im.chunks[i].owner = im.chunks[owner].owner
		i = int(im.chunks[i].owner)
	}
}

// unite makes one group of those of two chunks.
func (im *Image) unite(a, b int) {
	ra, rb := im.group(a), im.group(b)
	im.chunks[max(ra, rb)].owner = min(ra, rb)
}

// jumps says whether a chunk jumps to an address outside.
func (im *Image) jumps(chunk int, to uint64) bool {
	_, found := slices.BinarySearch(im.jumpsOut(chunk), to)
	return found
}

// findSharedZones finds chunks that control may come to, or leave, with something alive below the stack pointer, where
// event code would write over it: leaf code that jumps into code which isn't known to be of the same function, or runs
// into it, and both use that memory.
func (im *Image) findSharedZones() {
	for i := range im.chunks {
		c := &im.chunks[i]
		if !c.redZone {
			continue
		}
		for _, to := range im.jumpsOut(i) {
			k := im.chunkAt(to)
			if k < 0 {
				c.zone = c.zone || im.textAt(to) != nil && !im.isLinkage(to)
				continue
			}
			d := &im.chunks[k]
			if d.owner == c.owner || !d.redZone {
				continue
			}
			if to != d.start || d.names.n == 0 {
				c.zone = true
				d.zone = d.zone || to == d.start
			}
		}
		if i+1 < len(im.chunks) && !c.closed && im.chunks[i+1].start == c.end && im.chunks[i+1].redZone {
			im.chunks[i+1].zone = true
		}
	}
}

// adoptByName gives groups of parts only to the function that their name tells, when there is just one such.
func (im *Image) adoptByName() {
	whole := make([]bool, len(im.chunks)) // the groups that have a function
	for i := range im.chunks {
		if !im.chunks[i].isPart() {
			whole[im.group(i)] = true
		}
	}
	const none, several = -1, -2
	parents := map[string]int{} // by the names that are asked for
	base := func(i int) (name string, ok bool) {
		c := &im.chunks[i]
		if c.names.n == 0 || !c.cold || whole[im.group(i)] {
			return "", false
		}
		return coldBase(im.name(c))
	}
	for i := range im.chunks {
		if name, ok := base(i); ok {
			parents[name] = none
		}
	}
	if len(parents) == 0 {
		return
	}
	for i := range im.chunks {
		if c := &im.chunks[i]; !c.isPart() {
			for _, name := range im.namesOf(c) {
				switch parent, asked := parents[name]; {
				case asked && parent == none:
					parents[name] = i
				case asked:
					parents[name] = several
				}
			}
		}
	}
	adopted := map[int32]int{}
	for i := range im.chunks {
		if name, ok := base(i); ok && parents[name] != none {
			adopted[im.group(i)] = parents[name]
		}
	}
	for group, parent := range adopted {
		if parent >= 0 {
			im.chunks[group].owner = im.group(parent)
		}
	}
}

// split makes functions of the groups: of each one, or several that share a body, or a part without a function.
func (im *Image) split() []function {
	ends := make([]int32, len(im.chunks)) // of each group in parts
	for i := range im.chunks {
		ends[im.chunks[i].owner]++
	}
	n, groups := int32(0), 0
	for i := range ends {
		if ends[i] > 0 {
			groups++
		}
		ends[i], n = n, n+ends[i]
	}
	im.parts = hugepage.Make[int32](len(im.chunks))
	add := func(part bool) {
		for i := range im.chunks {
			if c := &im.chunks[i]; c.isPart() == part {
				im.parts[ends[c.owner]] = int32(i)
				ends[c.owner]++
			}
		}
	}
	add(false) // the entries first
	add(true)
	fns := hugepage.Make[function](groups)[:0]
	from := int32(0)
	for i := range im.chunks {
		if im.chunks[i].owner == int32(i) {
			fns = im.functionsOf(fns, from, ends[i])
			from = ends[i]
		}
	}
	return fns
}

// functionsOf appends the functions of the group whose parts are from from up to to.
func (im *Image) functionsOf(fns []function, from, to int32) []function {
	entries := int32(0)
	for from+entries < to && !im.chunks[im.parts[from+entries]].isPart() {
		entries++
	}
	switch entries {
	case 0:
		return append(fns, function{from: from, n: to - from, why: ReasonOrphan})
	case 1:
		return append(fns, function{from: from, n: to - from})
	}
	for k := range entries {
		fns = append(fns, function{from: from + k, n: 1, why: ReasonShared})
	}
	return fns
}
