package target

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// dataSize is how many bytes of data are behind an arena's code: a page that forked children inherit, and the gate's, which is wiped in them.
const dataSize = 2 * PageSize

// Arena is memory near some images: the code of their stubs, and behind it two data pages, the second with the gate.
type Arena struct {
	Images []*mapped.Image
	Fns    []stub.Probe
	Lo, Hi uint64 // addresses its images occupy, once it has functions those that its stubs have to reach
	Base   uint64
	Size   uint64 // of the code, whole pages
	Code   *stub.Code
	Mem    []byte // of the code, shared with the target; nil when probes are made all at once
	// Dev and inode are of the memfd that mem is of, as process.Mapping has them; 0 without one.
	Dev, Inode uint64
}

func (a *Arena) Gate() uint64 { return a.data() + PageSize }
func (a *Arena) data() uint64 { return a.Base + a.Size }
func (a *Arena) end() uint64  { return a.data() + dataSize }

// GroupImages puts images that one arena can serve together.
func GroupImages(images []*mapped.Image) []*Arena {
	slices.SortFunc(images, func(a, b *mapped.Image) int { return cmp.Compare(a.Lo, b.Lo) })
	var arenas []*Arena
	for _, im := range images {
		if n := len(arenas); n > 0 && im.Hi-arenas[n-1].Lo < together {
			a := arenas[n-1]
			a.Images = append(a.Images, im)
			a.Hi = max(a.Hi, im.Hi)
			continue
		}
		arenas = append(arenas, &Arena{Images: []*mapped.Image{im}, Lo: im.Lo, Hi: im.Hi})
	}
	return arenas
}

// growth is how much a heap above or a stack below may want.
const growth = 1 << 30

// place chooses an address for the arena in the gaps of the maps: within reach, as near as can be, not where the heap or the stack grows. If there
// is none the stack is left no more than stack bytes to grow, if that is less, and then the heap what reach allows, leastHeap at least. taken are
// arenas that were placed before.
func (a *Arena) place(maps []process.Mapping, taken []*Arena, stack uint64) error {
	base := a.find(maps, taken, growth, growth)
	if base == 0 && stack < growth {
		base = a.find(maps, taken, stack, growth)
	}
	if base == 0 && leastHeap < growth {
		base = a.find(maps, taken, min(stack, growth), leastHeap)
	}
	if base == 0 {
		return fmt.Errorf("callreel: %w: %d bytes of code find no free place in reach of %s (%#x to %#x): choose fewer functions (-f)", refusal.Err, a.Size+dataSize, a.Images[0].Path, a.Lo, a.Hi)
	}
	a.Base = base
	return nil
}

// find returns such an address, 0 if there is none.
func (a *Arena) find(maps []process.Mapping, taken []*Arena, stack, heapGrowth uint64) uint64 {
	const (
		lowest = 1 << 16
		margin = 1 << 16 // between the arena and what is there
	)
	need := a.Size + dataSize
	from := uint64(lowest)
	if a.Hi > reach+lowest {
		from = a.Hi - reach
	}
	to := a.Lo + reach
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
	occupied := make([]occupant, 0, len(maps)+len(taken)) // the process may be stopped meanwhile, and have very many mappings
	for i := range maps {
		m := &maps[i]
		occupied = append(occupied, occupant{m.Start, m.End, m.Special == "[heap]", m.Special == "[stack]"})
	}
	for _, t := range taken {
		occupied = append(occupied, occupant{start: t.Base, end: t.end()})
	}
	// Without address randomisation the gap above the stack reaches beyond what user space may map.
	top := addressTop(maps) - PageSize
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
		start, end := g.start+margin, g.end-min(g.end, margin)
		if g.heapBelow {
			start += heapGrowth
		}
		if g.stackAbove {
			end -= min(end, stack)
		}
		start, end = max(start, from), min(end, to)
		if start >= end || end-start < need {
			continue
		}
		// Below the images: the top of the gap; above: its bottom.
		cand := (end - need) &^ (PageSize - 1)
		if start > a.Hi {
			cand = (start + PageSize - 1) &^ (PageSize - 1)
			if g.heapBelow { // leave the heap all that reach allows
				cand = (end - need) &^ (PageSize - 1)
			}
		}
		if cand < start || cand+need > end {
			continue
		}
		dist := a.Lo - cand
		if cand > a.Lo {
			dist = cand - a.Lo
		}
		if g.heapBelow || g.stackAbove {
			dist += growth
		}
		if dist < bestDist {
			best, bestDist = cand, dist
		}
	}
	return best
}

// Bound makes the arena large enough for the code of its functions, whatever that will be, and says what that has to reach. Of its pages only those
// are ever used that code is put into.
func (a *Arena) Bound(rt *stub.Config) {
	a.Lo, a.Hi = generator().Span(a.Fns, a.Lo, a.Hi)
	a.Size = (generator().Bound(rt, a.Fns) + PageSize - 1) &^ (PageSize - 1)
}

// Compile makes the code for the place chosen.
func (a *Arena) Compile(rt stub.Config) error {
	rt.Gate = a.Gate()
	code, err := generator().Compile(a.Base, rt, a.Fns, a.Mem)
	if err != nil {
		return err
	}
	if uint64(len(code.Bytes)) > a.Size {
		return fmt.Errorf("callreel: stubs of %d bytes where %d were expected", len(code.Bytes), a.Size)
	}
	a.Code = code
	return nil
}

// share tells each image the patches of its own text: in the code's list islands come first, then sites, each in the
// order of their addresses.
func (a *Arena) share() {
	all := a.Code.Patches
	first := slices.IndexFunc(all, func(p stub.Patch) bool { return !p.Island })
	if first < 0 {
		first = len(all)
	}
	for _, im := range a.Images {
		im.Islands, im.Sites = within(all[:first], im.Lo, im.Hi), within(all[first:], im.Lo, im.Hi)
		for _, b := range a.Code.Rebindings {
			if b.Slot >= im.Lo && b.Slot < im.Hi {
				im.Rebindings = append(im.Rebindings, b)
			}
		}
	}
}

// within is what lies from lo to before hi of patches in the order of their addresses.
func within(patches []stub.Patch, lo, hi uint64) []stub.Patch {
	byAddr := func(p stub.Patch, a uint64) int { return cmp.Compare(p.Addr, a) }
	from, _ := slices.BinarySearchFunc(patches, lo, byAddr)
	to, _ := slices.BinarySearchFunc(patches, hi, byAddr)
	return slices.Clip(patches[from:to])
}

// ArenaOf is the arena of an image, nil as long as it has none.
func (s *Target) ArenaOf(im *mapped.Image) *Arena {
	for _, a := range s.Arenas {
		if slices.Contains(a.Images, im) {
			return a
		}
	}
	return nil
}
