package probe

import "slices"

// function is an entry chunk with the parts that were joined to it.
type function struct {
	entry  int      // index of the entry chunk
	parts  []int    // indexes of all chunks, the entry's first
	tables []uint64 // addresses of jump tables that its code refers to, sorted
	why    Reason
}

// isPart says whether a chunk can't be a function of its own.
func (c *chunk) isPart() bool {
	return c.inner || c.cold
}

// join groups chunks into functions. Parts belong to whom jumps into them and to whom they jump back into; the name
// decides only where no jump does. A group with two functions in it is a body that they share.
func (im *Image) join() []function {
	find := func(i int32) int32 {
		for im.chunks[i].owner != i {
			im.chunks[i].owner = im.chunks[im.chunks[i].owner].owner
			i = im.chunks[i].owner
		}
		return i
	}
	union := func(a, b int) {
		ra, rb := find(int32(a)), find(int32(b))
		if ra != rb {
			im.chunks[max(ra, rb)].owner = min(ra, rb)
		}
	}
	for i := range im.chunks {
		c := &im.chunks[i]
		for _, to := range c.jumpsOut {
			k := im.chunkAt(to)
			if k < 0 || k == i {
				continue
			}
			d := &im.chunks[k]
			switch {
			case d.isPart(), c.isPart() && to != d.start:
				union(i, k)
			case to != d.start && len(c.names) == 0 && d.jumpsTo(c.start):
				// Cold code with a fresh frame that has lost its name: each jumps to the other, and back into the middle.
				c.inner = true
				union(i, k)
			}
		}
	}
	im.findSharedZones()
	groups := map[int32][]int{}
	for i := range im.chunks {
		r := find(int32(i))
		groups[r] = append(groups[r], i)
	}
	im.adoptByName(groups)
	for i := range im.chunks {
		im.chunks[i].owner = find(int32(i))
	}
	var fns []function
	for i := range im.chunks {
		if members := groups[int32(i)]; members != nil {
			fns = append(fns, im.split(members)...)
		}
	}
	return fns
}

func (c *chunk) jumpsTo(addr uint64) bool {
	_, found := slices.BinarySearch(c.jumpsOut, addr)
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
		for _, to := range c.jumpsOut {
			k := im.chunkAt(to)
			if k < 0 {
				c.zone = c.zone || im.textAt(to) != nil && !im.isLinkage(to)
				continue
			}
			d := &im.chunks[k]
			if d.owner == c.owner || !d.redZone {
				continue
			}
			if to != d.start || len(d.names) == 0 {
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
func (im *Image) adoptByName(groups map[int32][]int) {
	byName := map[string]int{}
	for i := range im.chunks {
		if !im.chunks[i].isPart() {
			for _, n := range im.chunks[i].names {
				if _, twice := byName[n]; twice {
					byName[n] = -1
				} else {
					byName[n] = i
				}
			}
		}
	}
	for root, members := range groups {
		parent := -1
		for _, m := range members {
			c := &im.chunks[m]
			if !c.isPart() {
				parent = -1
				break
			}
			if len(c.names) > 0 {
				if s := coldName.FindStringSubmatch(c.names[0]); s != nil {
					if p, ok := byName[s[1]]; ok {
						parent = p
					}
				}
			}
		}
		if parent < 0 {
			continue
		}
		to := im.chunks[parent].owner
		for im.chunks[to].owner != to {
			to = im.chunks[to].owner
		}
		if to == root || groups[to] == nil {
			continue
		}
		groups[to] = append(groups[to], members...)
		im.chunks[root].owner = to
		delete(groups, root)
	}
}

// split makes the functions of a group: one, or several that share a body, or a part without a function.
func (im *Image) split(members []int) []function {
	var entries, parts []int
	for _, m := range members {
		if im.chunks[m].isPart() {
			parts = append(parts, m)
		} else {
			entries = append(entries, m)
		}
	}
	switch len(entries) {
	case 0:
		return []function{{entry: members[0], parts: members, why: ReasonOrphan}}
	case 1:
		return []function{{entry: entries[0], parts: append(entries, parts...)}}
	}
	var fns []function
	for _, e := range entries {
		fns = append(fns, function{entry: e, parts: []int{e}, why: ReasonShared})
	}
	return fns
}
