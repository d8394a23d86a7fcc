package target

import (
	"math"
	"slices"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// functionPatches are the places of patches in an arena's list, by function.
type functionPatches struct {
	first  uint32  // the lowest function's ID
	starts []int32 // of each function's part of places, by its ID from first on, and where the last ends
	places []int32
}

// of are those of one function.
func (p *functionPatches) of(id uint32) []int32 {
	if id < p.first || int(id-p.first)+1 >= len(p.starts) {
		return nil
	}
	i := id - p.first
	return p.places[p.starts[i]:p.starts[i+1]]
}

// newFunctionPatches takes the patches for which is says so, which are of functions.
func newFunctionPatches(patches []stub.Patch, is func(*stub.Patch) bool) *functionPatches {
	lowest, highest := uint32(math.MaxUint32), uint32(0)
	for i := range patches {
		if p := &patches[i]; is(p) {
			lowest, highest = min(lowest, p.ID), max(highest, p.ID)
		}
	}
	if lowest > highest {
		return &functionPatches{}
	}
	of := &functionPatches{first: lowest, starts: make([]int32, int(highest-lowest)+2)}
	for i := range patches {
		if p := &patches[i]; is(p) {
			of.starts[p.ID-lowest+1]++
		}
	}
	for i := range of.starts[1:] {
		of.starts[i+1] += of.starts[i]
	}
	of.places = make([]int32, of.starts[len(of.starts)-1])
	next := slices.Clone(of.starts)
	for i := range patches {
		if p := &patches[i]; is(p) {
			of.places[next[p.ID-lowest]] = int32(i)
			next[p.ID-lowest]++
		}
	}
	return of
}

// patchesOf are an arena's patches by function, but for islands in padding, and those of functions whose sites stay. The caller holds writing.
func (s *Target) patchesOf(a *Arena) *functionPatches {
	of := s.byFunction[a]
	if of == nil {
		stays := map[uint32]bool{}
		for i := range a.Fns {
			if fn := &a.Fns[i]; !CanTakeOut(fn) {
				stays[fn.ID] = true
			}
		}
		of = newFunctionPatches(a.Code.Patches, func(p *stub.Patch) bool { return p.ID != 0 && !p.Island && !stays[p.ID] })
		if s.byFunction == nil {
			s.byFunction = map[*Arena]*functionPatches{}
		}
		s.byFunction[a] = of
	}
	return of
}
