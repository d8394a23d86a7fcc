package recorder

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/probe"
	"github.com/callreel/callreel/recorder/internal/text"
)

const pageSize = text.PageSize

// arena is memory near some images: the code of their stubs, and behind it one data page with the gate.
type arena struct {
	images []*mapped.Image
	fns    []probe.Selected
	lo, hi uint64 // addresses its images occupy
	base   uint64
	size   uint64 // of the code, whole pages
	code   *probe.Code
	mem    []byte // of the code, shared with the target; nil when probes are made all at once
	// dev and inode are of the memfd that mem is of, as process.Mapping has them; 0 without one.
	dev, inode uint64
}

func (a *arena) gate() uint64 { return a.base + a.size }
func (a *arena) end() uint64  { return a.base + a.size + pageSize }

// reach is how far an arena may be from the far end of its images: what 32 bits address, less some room.
const reach = 1<<31 - 1<<20

// groupImages puts images that one arena can serve together.
func groupImages(images []*mapped.Image) []*arena {
	slices.SortFunc(images, func(a, b *mapped.Image) int { return cmp.Compare(a.Lo, b.Lo) })
	var arenas []*arena
	for _, im := range images {
		if n := len(arenas); n > 0 && im.Hi-arenas[n-1].lo < reach/2 {
			a := arenas[n-1]
			a.images = append(a.images, im)
			a.hi = max(a.hi, im.Hi)
			continue
		}
		arenas = append(arenas, &arena{images: []*mapped.Image{im}, lo: im.Lo, hi: im.Hi})
	}
	return arenas
}

// place chooses an address for the arena in the gaps of the maps: within reach, as near as can be, not where the heap
// or the stack grows. taken are arenas that were placed before.
func (a *arena) place(maps []process.Mapping, taken []*arena) error {
	const (
		lowest = 1 << 16
		guard  = 1 << 16 // between the arena and what is there
		growth = 1 << 30 // that a heap above or a stack below may want
	)
	need := a.size + pageSize
	from := uint64(lowest)
	if a.hi > reach+lowest {
		from = a.hi - reach
	}
	to := a.lo + reach
	type gap struct {
		start, end uint64
		heapBelow  bool
		stackAbove bool
	}
	var gaps []gap
	at, heap := uint64(lowest), false
	type occupant struct {
		start, end  uint64
		heap, stack bool
	}
	occupied := make([]occupant, 0, len(maps)+len(taken)) // the process may stand meanwhile, and have very many mappings
	for i := range maps {
		m := &maps[i]
		occupied = append(occupied, occupant{m.Start, m.End, m.Special == "[heap]", m.Special == "[stack]"})
	}
	for _, t := range taken {
		occupied = append(occupied, occupant{start: t.base, end: t.end()})
	}
	// Without address randomisation the gap above the stack reaches beyond what user space may map.
	const top = 1<<47 - pageSize
	slices.SortFunc(occupied, func(x, y occupant) int { return cmp.Compare(x.start, y.start) })
	for _, m := range occupied {
		if end := min(m.start, top); end > at {
			gaps = append(gaps, gap{at, end, heap, m.stack})
		}
		at, heap = max(at, m.end), m.heap
	}
	gaps = append(gaps, gap{at, max(at, top), heap, false})
	best, bestDist := uint64(0), ^uint64(0)
	for _, g := range gaps {
		start, end := g.start+guard, g.end-min(g.end, guard)
		if g.heapBelow {
			start += growth
		}
		if g.stackAbove {
			end -= min(end, growth)
		}
		start, end = max(start, from), min(end, to)
		if start >= end || end-start < need {
			continue
		}
		// Below the images: the top of the gap; above: its bottom.
		cand := (end - need) &^ (pageSize - 1)
		if start > a.hi {
			cand = (start + pageSize - 1) &^ (pageSize - 1)
			if g.heapBelow { // leave the heap all the room that reach allows
				cand = (end - need) &^ (pageSize - 1)
			}
		}
		if cand < start || cand+need > end {
			continue
		}
		dist := a.lo - cand
		if cand > a.lo {
			dist = cand - a.lo
		}
		if g.heapBelow || g.stackAbove {
			dist += growth
		}
		if dist < bestDist {
			best, bestDist = cand, dist
		}
	}
	if best == 0 {
		return fmt.Errorf("callreel: %w: %d bytes of code find no free place within 2 GiB of %s (%#x)", ErrRefused, need, a.images[0].Path, a.lo)
	}
	a.base = best
	return nil
}

// bound makes the arena large enough for the code, whatever that will be; of its pages only those are ever used that code is
// put into.
func (a *arena) bound(rt *probe.Runtime) {
	a.size = (probe.Bound(rt, a.fns) + probe.BoundCaptures(a.fns, rt.Captures) + pageSize - 1) &^ (pageSize - 1)
}

// compile makes the code for the place chosen.
func (a *arena) compile(rt probe.Runtime) error {
	rt.Gate = a.gate()
	code, err := probe.Compile(a.base, rt, a.fns, a.mem)
	if err != nil {
		return err
	}
	if uint64(len(code.Bytes)) > a.size {
		return fmt.Errorf("callreel: stubs of %d bytes where %d were expected", len(code.Bytes), a.size)
	}
	a.code = code
	return nil
}

// share tells each image the patches of its own text: in the code's list islands come first, then sites, each in the
// order of their addresses.
func (a *arena) share() {
	all := a.code.Patches
	first := slices.IndexFunc(all, func(p probe.Patch) bool { return !p.Island })
	if first < 0 {
		first = len(all)
	}
	for _, im := range a.images {
		im.Islands, im.Sites = within(all[:first], im.Lo, im.Hi), within(all[first:], im.Lo, im.Hi)
	}
}

// within is what lies from lo to before hi of patches in the order of their addresses.
func within(patches []probe.Patch, lo, hi uint64) []probe.Patch {
	byAddr := func(p probe.Patch, a uint64) int { return cmp.Compare(p.Addr, a) }
	from, _ := slices.BinarySearchFunc(patches, lo, byAddr)
	to, _ := slices.BinarySearchFunc(patches, hi, byAddr)
	return slices.Clip(patches[from:to])
}

// arenaOf is the arena of an image, nil as long as it has none.
func (s *session) arenaOf(im *mapped.Image) *arena {
	for _, a := range s.arenas {
		if slices.Contains(a.images, im) {
			return a
		}
	}
	return nil
}
