package arm64

import (
	"errors"
	"slices"
	"testing"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Code can be made wherever it has in reach what it is said to have to reach, below and above it, and not much farther away. The image's data isn't
// among that.
func TestCodeIsMadeWhereItReachesItsSpan(t *testing.T) {
	const (
		slide  = 1 << 40
		branch = 1 << 27
		slack  = 1 << 20 // what nearer stubs are away from the arena's end, and nearer sites from the span's
		page   = 1 << 12
	)
	p := buildProgram(t, "-O2")
	fns := slices.Clone(p.probes)
	for i := range fns {
		fns[i].Slide = slide
	}
	from, to := Generator{}.Span(fns, slide, slide+1<<30)
	if to-from > slack || from <= slide {
		t.Fatalf("%#x to %#x", from, to)
	}
	cfg := stub.Config{TIDOffset: glibcTID, Ring: testRing, HWCap: hwcapAtomics}
	size := (Generator{}.Bound(&cfg, fns) + page - 1) &^ (page - 1)
	for _, k := range []struct {
		base  uint64
		fails bool
	}{
		{base: (to - branch + page) &^ (page - 1)},
		{base: (from + branch - size - page) &^ (page - 1)},
		{base: (from - branch - slack) &^ (page - 1), fails: true},
		{base: (to + branch + slack) &^ (page - 1), fails: true},
	} {
		cfg.Gate = k.base + size
		code, err := Generator{}.Compile(k.base, cfg, fns, nil)
		if k.fails {
			if !errors.Is(err, arm64.ErrAsmRange) {
				t.Errorf("at %#x: %v", k.base, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("at %#x, %#x to %#x: %v", k.base, from, to, err)
			continue
		}
		for i := range code.Patches {
			if at := code.Patches[i].Addr; at < from || at >= to {
				t.Errorf("a patch at %#x, %#x to %#x", at, from, to)
			}
		}
	}
	if from, to := (Generator{}).Span(nil, 1, 2); from != 1 || to != 2 {
		t.Errorf("%#x to %#x of nothing", from, to)
	}
}
