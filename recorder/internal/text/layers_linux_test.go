package text

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// layeredPatches are patches of five pages: three in a row, of several levels, one apart. They come as an arena has them,
// islands first, and then those of another arena.
func layeredPatches(base uint64) []stub.Patch {
	patch := func(off uint64, level uint8, n int) stub.Patch {
		p := stub.NewPatch(base+off, make([]byte, n), bytes.Repeat([]byte{level + 1}, n))
		p.Level, p.Island = level, level == 0
		return p
	}
	return []stub.Patch{
		patch(0x0010, 0, 5), patch(0x2ffb, 0, 5),
		patch(0x0000, 1, 5), patch(0x0100, 1, 2), patch(0x0200, 3, 5), patch(0x1000, 2, 5), patch(0x1ffb, 1, 5), patch(0x2000, 1, 4),
		patch(0x4000, 1, 5),
	}
}

// manyLayeredPatches are layeredPatches over and over, as an arena has them: so many that all cores prepare them.
func manyLayeredPatches(base uint64, times int) []stub.Patch {
	var islands, sites []stub.Patch
	for i := range uint64(times) {
		for _, p := range layeredPatches(base + i*5*PageSize) {
			if p.Island {
				islands = append(islands, p)
			} else {
				sites = append(sites, p)
			}
		}
	}
	return append(islands, sites...)
}

// At every moment what is written is all patches of lower levels, and none of higher ones, whatever page they are on.
func TestTextIsWrittenLevelByLevel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for _, times := range []int{1, 3 * leastPages / 4} {
		writeByLevels(t, times)
	}
}

func writeByLevels(t *testing.T, times int) {
	mem, now, base := mapPages(t, 5*times)
	patches := manyLayeredPatches(base, times)
	layers, all, err := Prepare(mem, patches)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 4*times || len(layers) != 4 {
		t.Fatalf("%d pages in %d layers, want %d in 4", len(all), len(layers), 4*times)
	}
	want := make([]byte, len(now))
	for level, layer := range layers {
		if err := Write(mem, layer); err != nil {
			t.Fatal(err)
		}
		for i := range patches {
			if p := &patches[i]; int(p.Level) == level {
				copy(want[p.Addr-base:], p.New())
			}
		}
		if !bytes.Equal(now, want) {
			t.Errorf("after level %d the text is not as it should be", level)
		}
	}
	for i := range all {
		if !bytes.Equal(all[i].New, want[all[i].Addr-base:][:PageSize]) {
			t.Errorf("page %#x isn't as it is in the end", all[i].Addr-base)
		}
	}
	// And back, all at once, from what is in memory.
	maps := []process.Mapping{{Start: base, End: base + uint64(len(now)), Perm: process.PermRead | process.PermExec}}
	pages, foreign, err := Restore(mem, maps, patches)
	if err != nil || foreign != 0 {
		t.Fatalf("%d foreign, %v", foreign, err)
	}
	if err := writePages(mem, pages, NewSide); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(now, make([]byte, len(now))) {
		t.Error("the text is not Undo")
	}
}

func TestTextThatDiffersIsNotPrepared(t *testing.T) {
	mem, now, base := mapPages(t, 5)
	now[0x1001] = 1
	if _, _, err := Prepare(mem, layeredPatches(base)); !errors.Is(err, Err) {
		t.Errorf("text that differs: %v", err)
	}
	now[0x1001] = 0
	crossing := append(layeredPatches(base), stub.NewPatch(base+0x3ffe, make([]byte, 5), []byte{1, 2, 3, 4, 5}))
	if _, _, err := Prepare(mem, crossing); !errors.Is(err, refusal.Err) {
		t.Errorf("a patch on two pages: %v", err)
	}
}

func TestPatchesInTheOrderOfTheirAddresses(t *testing.T) {
	one := layeredPatches(0x1000)
	for name, patches := range map[string][]stub.Patch{
		"none": nil, "one run": one[2:3], "islands and sites": one, "many runs": slices.Repeat(one, 20),
		"others": slices.Concat(one[4:], one[:4]),
	} {
		before := slices.Clone(patches)
		got := ByAddress(patches)
		if !slices.IsSortedFunc(got, func(a, b stub.Patch) int { return int(a.Addr) - int(b.Addr) }) || len(got) != len(patches) {
			t.Errorf("%s: not in order, or %d of %d", name, len(got), len(patches))
		}
		for _, p := range before {
			if !slices.Contains(got, p) {
				t.Errorf("%s: the patch at %#x is missing", name, p.Addr)
			}
		}
		if !slices.Equal(patches, before) {
			t.Errorf("%s: the patches themselves were moved", name)
		}
	}
}
