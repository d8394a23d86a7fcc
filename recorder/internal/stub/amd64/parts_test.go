package amd64

import (
	"bytes"
	"runtime"
	"slices"
	"testing"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// What several cores make at the same time is what one makes, but for the place: all patches and slots are there, in the same order; each
// function's stubs are those that are made for just this place; and unwinders find the same.
func TestStubsThatAreMadeInPartsAreThoseMadeInOneGo(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	im := realImage(t, "libcrypto")
	selected := selectedOf(im, planImage(t, im), 1<<20)
	if len(selected) < 3*leastPart {
		t.Fatalf("only %d functions", len(selected))
	}
	cfg := stub.Config{Lazy: true}
	one := compileFrames(t, cfg, selected)
	buf := make([]byte, 0, bound(&stub.Config{}, selected))
	several := compileFramesTo(t, cfg, selected, buf)
	if &several.Bytes[0] != &buf[:1][0] || len(several.Bytes) > cap(buf) {
		t.Errorf("%d bytes in a buffer of %d, or elsewhere", len(several.Bytes), cap(buf))
	}
	gaps := 0
	for i := 1; i < len(selected); i++ {
		gaps += btoi(several.stubs[i]-several.stubs[i-1] > one.stubs[i]-one.stubs[i-1]+amd64.PageSize)
	}
	if gaps != 2 {
		t.Errorf("%d gaps between the functions, want 2 between 3 parts", gaps)
	}
	for i := range selected {
		c := several.coder(several.Base+uint64(several.stubs[i]), nil)
		if err := (&emitter{coder: c, code: &Code{fns: selected}}).function(i); err != nil {
			t.Fatal(err)
		}
		if want := c.Since(0); !bytes.Equal(several.Bytes[several.stubs[i]:][:len(want)], want) {
			t.Errorf("%s: the stubs at %#x are others", selected[i].Name, several.stubs[i])
		}
	}
	if !slices.EqualFunc(one.Slots, several.Slots, func(a, b stub.Slot) bool { return a.ID == b.ID }) {
		t.Errorf("%d slots and %d, or others", len(one.Slots), len(several.Slots))
	}
	if len(one.Patches) != len(several.Patches) {
		t.Fatalf("%d patches and %d", len(one.Patches), len(several.Patches))
	}
	stubs := 0
	for i, p := range several.Patches {
		q := one.Patches[i]
		to, jumps := leadsTo(p)
		was, _ := leadsTo(q)
		copy(p.New(), q.New())
		if p != q {
			t.Fatalf("patch %d is %+v and %+v", i, q, p)
		}
		if !jumps || i%8 != 0 || to < several.Base || to >= several.Base+uint64(len(several.Bytes)) {
			continue
		}
		stubs++
		if got, want := several.stands(t, to), one.stands(t, was); got != want {
			t.Errorf("the stub at %#x stands for %#x, want %#x", to, got, want)
		}
	}
	if stubs < 1000 {
		t.Errorf("only %d stubs", stubs)
	}
}
