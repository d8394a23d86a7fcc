package arm64

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// That one function's arguments are kept takes room for its stubs, and not for those of all: what many functions need has to be in a branch's
// reach. The code has room all the same.
func TestWhatOneFunctionKeepsTakesNoRoomOfOthers(t *testing.T) {
	p := buildProgram(t, "-O2")
	var fns []stub.Probe
	for len(fns) <= InlineLimit {
		fns = append(fns, slices.Clone(p.probes)...)
	}
	for i := range fns {
		fns[i].ID = uint32(i + 1)
	}
	cfg := stub.Config{TIDOffset: glibcTID, Ring: testRing, HWCap: hwcapAtomics, Kept: testRing}
	without := Generator{}.Bound(&cfg, fns)
	cfg.Keeps = map[uint32]stub.Keep{fns[0].ID: {Least: 1, Second: true}}
	bound := Generator{}.Bound(&cfg, fns)
	if more := bound - without; more == 0 || more > without/8 {
		t.Errorf("%d bytes more than %d for one of %d functions", more, without, len(fns))
	}
	const base = 1 << 24
	cfg.Gate = base + (bound+4095)&^4095
	code, err := Generator{}.Compile(base, cfg, fns, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := uint64(len(code.Bytes)); n > bound {
		t.Errorf("%d bytes of code, %d at most", n, bound)
	}
}
