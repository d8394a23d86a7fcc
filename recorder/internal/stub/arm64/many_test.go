package arm64

import (
	"testing"

	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A function with very many exits has more code than some branches reach over.
func TestAFunctionMayHaveManyExits(t *testing.T) {
	for _, cfg := range []stub.Config{{Gate: testArena + 1<<20, TIDOffset: glibcTID}, {Gate: testArena + 1<<20, Min: true, HWCap: hwcapAtomics}} {
		c := &coder{Asm: arm64.NewAsm(testArena, nil), cfg: &cfg, routines: &routines{}, base: testArena}
		c.routines.slow = c.emitSlow()
		c.flushed = c.offset()
		e := &emitter{coder: c, fn: &stub.Probe{Function: &plan.Function{}, ID: 1}}
		for i := range uint64(2000) {
			word := uint32(0xD65F03C0)
			if i%2 == 0 {
				word = 0x54000001 | 16<<5 // b.ne
			}
			if err := e.site(moved{addr: testArena + 2<<20 + 4*i, word: word, exit: true}); err != nil {
				t.Fatal(err)
			}
			c.flushOften()
		}
		c.flush()
		if code, err := c.Finish(); err != nil || len(code) < 200<<10 {
			t.Errorf("%d bytes, %v", len(code), err)
		}
	}
}
