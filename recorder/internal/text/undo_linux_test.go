package text

import (
	"bytes"
	"runtime"
	"slices"
	"testing"

	"github.com/callreel/callreel/process"
)

// At every moment what is Undo is all patches of higher levels, and none of lower ones, whatever page they are on; but what has to do
// with its own page only is Undo with the first of that page.
func TestTextIsRestoredLevelByLevel(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	for _, times := range []int{1, 3 * leastPages / 4} {
		mem, now, base := mapPages(t, 5*times)
		patches := manyLayeredPatches(base, times)
		for i := range patches {
			p := &patches[i]
			p.Alone = p.Addr&0xFFF == 0x100 // of a page with levels 0, 1 and 3
			copy(now[p.Addr-base:], p.New())
		}
		maps := []process.Mapping{{Start: base, End: base + uint64(len(now)), Perm: process.PermRead | process.PermExec}}
		text, err := PrepareUndo(mem, maps, patches)
		if err != nil {
			t.Fatal(err)
		}
		if len(text.Pages) != 4*times || len(text.Layers) != 4 || text.Foreign != 0 {
			t.Fatalf("%d pages in %d layers, %d foreign, want %d in 4", len(text.Pages), len(text.Layers), text.Foreign, 4*times)
		}
		want := slices.Clone(now)
		for level, layer := range slices.Backward(text.Layers) {
			if err := WriteThere(mem, layer); err != nil {
				t.Fatal(err)
			}
			for i := range patches {
				if p := &patches[i]; !p.Alone && int(p.Level) == level || p.Alone && level == 3 {
					copy(want[p.Addr-base:], p.Old())
				}
			}
			if !bytes.Equal(now, want) {
				t.Errorf("after level %d the text is not as it should be", level)
			}
		}
		if !bytes.Equal(now, make([]byte, len(now))) {
			t.Error("the text is not Undo")
		}
		for i := range text.Pages {
			if pg := &text.Pages[i]; pg.Partly != ((pg.Addr-base)%(5*PageSize) == 0 || (pg.Addr-base)%(5*PageSize) == PageSize ||
				(pg.Addr-base)%(5*PageSize) == 2*PageSize) {
				t.Errorf("page %#x is written more than once: %v", pg.Addr-base, pg.Partly)
			}
		}
	}
}

// Pages whose patches have to do with no other page are written once, whatever their levels.
func TestAPageByItselfIsWrittenOnce(t *testing.T) {
	mem, now, base := mapPages(t, 5)
	patches := layeredPatches(base)
	for i := range patches {
		patches[i].Alone = true
	}
	layers, all, err := Prepare(mem, patches)
	if err != nil {
		t.Fatal(err)
	}
	if len(layers) != 1 || len(layers[0]) != 4 || len(all) != 4 {
		t.Fatalf("%d pages in %d layers", len(all), len(layers))
	}
	if err := Write(mem, layers[0]); err != nil {
		t.Fatal(err)
	}
	want := make([]byte, len(now))
	for i := range patches {
		copy(want[patches[i].Addr-base:], patches[i].New())
	}
	if !bytes.Equal(now, want) {
		t.Error("the text is not as it should be")
	}
	now[0x1000] ^= 0xFF // somebody's breakpoint on a site
	maps := []process.Mapping{{Start: base, End: base + uint64(len(now)), Perm: process.PermRead | process.PermExec}}
	text, err := PrepareUndo(mem, maps, patches)
	if err != nil {
		t.Fatal(err)
	}
	if len(text.Layers) != 1 || text.Foreign != 1 || slices.ContainsFunc(text.Pages, func(p Page) bool { return p.Partly }) {
		t.Errorf("%d layers, %d foreign", len(text.Layers), text.Foreign)
	}
	if err := WriteThere(mem, text.Layers[0]); err != nil {
		t.Fatal(err)
	}
	clear(want)
	copy(want[0x1000:], now[0x1000:0x1005])
	if !bytes.Equal(now, want) || now[0x1000] == 0 {
		t.Error("the text is not Undo, or somebody's breakpoint with it")
	}
}
