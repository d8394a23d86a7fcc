package target

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/callreel/callreel/recorder/internal/stub"
)

func TestPatchesAreFoundByFunction(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 7, 5000} {
		patches := make([]stub.Patch, n)
		want := map[uint32][]int32{}
		is := func(p *stub.Patch) bool { return p.ID != 0 && !p.Island }
		for i := range patches {
			p := &patches[i]
			p.ID, p.Island = uint32(r.IntN(1000)), r.IntN(5) == 0
			if p.ID != 0 {
				p.ID += 70_000
			}
			if is(p) {
				want[p.ID] = append(want[p.ID], int32(i))
			}
		}
		of := newFunctionPatches(patches, is)
		for id := uint32(69_990); id < 71_010; id++ {
			if got := of.of(id); !slices.Equal(got, want[id]) {
				t.Fatalf("of %d patches, those of %d are %v, want %v", n, id, got, want[id])
			}
		}
		for _, id := range []uint32{0, 1, 1<<32 - 1} {
			if got := of.of(id); len(got) > 0 {
				t.Errorf("of %d patches, %v are those of %d", n, got, id)
			}
		}
	}
}
