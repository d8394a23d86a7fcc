package golang

import (
	"testing"

	"github.com/callreel/callreel/isa/arm64"
)

func TestStackChecksOfARM64(t *testing.T) {
	const (
		guard  = 0xF9400B90 // ldr x16, [x28, #16]
		guard1 = 0xF9400F90
		cmp    = 0xEB3063FF // cmp sp, x16
		sub    = 0xD10143F1 // sub x17, sp, #80
		subs   = 0xF14143F1 // subs x17, sp, #80, lsl #12
		cmp17  = 0xEB10023F // cmp x17, x16
		ls     = 0x54000109 // b.ls
		lo     = 0x54000103 // b.lo
		hi     = 0x54000108 // b.hi
		push   = 0xF81E0FFE // str x30, [sp, #-32]!
		move   = 0xD2800014 // mov x20, #0
		movek  = 0xD281001B // mov x27, #2048
		subx   = 0xCB3B63F1 // sub x17, sp, x27
		ret    = 0xD65F03C0
	)
	for _, c := range []struct {
		name string
		code []uint32
		want int
	}{
		{"small frame", []uint32{guard, cmp, ls, push}, 3},
		{"of the system's stack", []uint32{guard1, cmp, ls, push}, 3},
		{"large frame", []uint32{guard, sub, cmp17, ls, push}, 4},
		{"larger than one immediate", []uint32{guard, movek, subx, cmp17, ls, push}, 5},
		{"huge frame", []uint32{guard, subs, lo, cmp17, ls, push}, 5},
		{"none", []uint32{push, ret}, 0},
		{"nothing", nil, 0},
		{"another comparison", []uint32{guard, cmp, hi, push}, 0},
		{"something else in between", []uint32{guard, move, cmp, ls, push}, 0},
		{"ends behind it", []uint32{guard, cmp}, 0},
	} {
		insts := make([]arm64.Inst, len(c.code))
		for i, w := range c.code {
			if err := arm64.DecodeWord(&insts[i], w); err != nil {
				t.Fatalf("%s: %#x: %v", c.name, w, err)
			}
		}
		if got := StackCheckARM64(len(insts), func(k int) *arm64.Inst { return &insts[k] }); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A goroutine's data may be anything.
func TestThreadsByTheirGoroutines(t *testing.T) {
	const g, m, gsignal, procID = 0x10800, 0x10400, 0x10A00, 64
	for _, c := range []struct {
		name        string
		g, m, id, s uint64
		known       bool
	}{
		{"as it should be", g, m, 7, gsignal, true},
		{"no stack for signals yet", g, m, 7, 0, true},
		{"no ID yet", g, m, 0, gsignal, false},
		{"no thread yet", g, 0, 7, gsignal, false},
		{"no goroutine", 0, m, 7, gsignal, false},
		{"a goroutine elsewhere", 1 << 40, m, 7, gsignal, false},
		{"no pointer", 0x10801, m, 7, gsignal, false},
		{"a thread elsewhere", g, 1 << 40, 7, gsignal, false},
		{"signals elsewhere", g, m, 7, 1 << 40, false},
	} {
		mem := &made{0x10000, make([]byte, 0x1000)}
		mem.put(g+gM, c.m)
		mem.put(m+procID, c.id, c.s)
		mem.put(gsignal, 0x20000, 0x28000)
		th, known := ReadThreadOf(mem, c.g, procID)
		if known != c.known || known && (th.ID != 7 || th.G != c.g || (th.Signals.Hi != 0) != (c.s != 0)) {
			t.Errorf("%s: %+v, %v", c.name, th, known)
		}
	}
	if ids := ProcIDs(); ids != [...]int32{72, 64} {
		t.Errorf("%d", ids)
	}
}
