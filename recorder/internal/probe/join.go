package probe

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/callreel/callreel/object"
)

// function is an entry chunk with the parts that were joined to it.
type function struct {
	entry int   // index of the entry chunk
	parts []int // indexes of all chunks, the entry's first
	why   Reason
}

// isPart says whether a chunk can't be a function of its own.
func (c *chunk) isPart() bool {
	return c.inner || len(c.names) > 0 && coldName.MatchString(c.names[0])
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
		for _, j := range c.jumpsOut {
			k := im.chunkAt(j.to)
			if k < 0 || k == i {
				continue
			}
			d := &im.chunks[k]
			switch {
			case d.isPart(), c.isPart() && j.to != d.start:
				union(i, k)
			case j.to != d.start && len(c.names) == 0 && d.jumpsTo(c.start):
				// Cold code with a fresh frame that has lost its name: each jumps to the other, and back into the middle.
				c.inner = true
				union(i, k)
			}
		}
	}
	groups := map[int32][]int{}
	for i := range im.chunks {
		r := find(int32(i))
		groups[r] = append(groups[r], i)
	}
	im.adoptByName(groups)
	var fns []function
	for i := range im.chunks {
		if members := groups[int32(i)]; members != nil {
			fns = append(fns, im.split(members)...)
		}
	}
	return fns
}

func (c *chunk) jumpsTo(addr uint64) bool {
	for _, j := range c.jumpsOut {
		if j.to == addr {
			return true
		}
	}
	return false
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
		fns = append(fns, function{entry: e, parts: append([]int{e}, parts...), why: ReasonShared})
	}
	return fns
}

// markData marks what data says about code addresses: relocations, words of an image that isn't relocated, the entry
// point.
func (im *Image) markData() error {
	im.markTaken(im.Object.Entry())
	err := im.Object.RelativeTargets(func(_, to uint64) { im.markTaken(to) })
	if err != nil || im.Object.Type != object.Executable {
		return err
	}
	for _, s := range im.loads {
		if s.Perm&object.PermX != 0 && len(im.Object.Sections()) > 0 {
			continue
		}
		data, err := im.Object.ReadAddr(s.Addr, s.FileSize)
		if err != nil {
			return err
		}
		for off := int(-s.Addr & 7); off+8 <= len(data); off += 8 {
			im.markTaken(binary.LittleEndian.Uint64(data[off:]))
		}
	}
	return nil
}

// markTaken marks an address of code that data holds. Inside a function it is a label: the target of an indirect jump.
func (im *Image) markTaken(addr uint64) {
	t := im.textAt(addr)
	if t == nil {
		return
	}
	t.targets.add(addr - t.start)
	if k := im.chunkAt(addr); k >= 0 && im.chunks[k].start != addr {
		atomic.StoreUint32(&im.chunks[k].labels, 1)
	}
}

// maxTable bounds the entries of one jump table.
const maxTable = 1 << 16

// markTables reads at every data address that the function's code refers to a table of 32-bit offsets from its own
// start, for as long as they lead into the function. What isn't a table gives at worst a target too many.
func (im *Image) markTables(f *function) {
	for _, p := range f.parts {
		for _, base := range im.chunks[p].bases {
			im.markTable(f, base)
		}
	}
}

func (im *Image) markTable(f *function, base uint64) {
	for i := uint64(0); i < maxTable; i++ {
		b, err := im.Object.ReadAddr(base+4*i, 4)
		if err != nil {
			return
		}
		to := base + uint64(int64(int32(binary.LittleEndian.Uint32(b))))
		if !im.inFunction(f, to) || to == base {
			return
		}
		im.markTaken(to)
	}
}

// inFunction says whether addr is inside one of the function's parts.
func (im *Image) inFunction(f *function, addr uint64) bool {
	for _, p := range f.parts {
		if c := &im.chunks[p]; addr >= c.start && addr < c.end {
			return true
		}
	}
	return false
}
