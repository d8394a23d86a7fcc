package amd64

import (
	"bytes"
	"testing"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// With shadow stacks a return must go to where the call was, and by the return address that the call has pushed: so no code of an arena
// writes over one, jumps by one or pushes one, and every return of a routine comes with the stack pointer as it was at its start.
func TestArenaCodeKeepsShadowStacksInStep(t *testing.T) {
	const base = 1 << 28 // in the reach of an image at 0
	im := realImage(t, "libc")
	fns := planImage(t, im)
	prologue := []byte{0x48, 0x8D, 0x64, 0x24, 0xC0} // lea -64(%rsp), %rsp
	var chosen []stub.Probe
	for i := range fns {
		if f := &fns[i]; f.Tier != plan.TierNone {
			chosen = append(chosen, stub.Probe{Function: f, Image: im, ID: uint32(len(chosen) + 1)})
		}
	}
	for name, few := range map[string]int{"inline": 100, "shared": len(chosen)} {
		for _, lazy := range []bool{false, true} {
			code, err := compile(base, stub.Config{Gate: base - 4096, Ring: 1 << 40, Lazy: lazy}, chosen[:few], nil)
			if err != nil {
				t.Fatal(err)
			}
			// What comes before the first stub are routines: of these alone all returns are our own.
			returns := 0
			depth, depths := 0, map[uint64]int{} // of the stack, where jumps lead to
			for at := 0; at < int(code.stubs[0]); {
				in, err := amd64.Decode(code.Bytes[at:])
				skip := 1 // of constants, up to the routine behind them
				if err == nil {
					skip = bytes.Index(code.Bytes[at:][:int(in.Len)+len(prologue)-1], prologue)
				}
				if skip > 0 {
					at, depth = at+skip, 0
					continue
				}
				pc := base + uint64(at)
				if d, ok := depths[pc]; ok {
					depth = d
				}
				if to, ok := in.Target(pc); ok && in.Kind != amd64.Call {
					depths[to] = depth
				}
				if in.HasMem && in.Base == int8(amd64.RSP) && in.Index == amd64.NoReg && int(in.Disp) == depth && !(in.Encoding == amd64.Legacy && in.Map == amd64.MapPrimary && in.Opcode == 0x8D) && in.Opcode != 0x8B {
					t.Errorf("%s: +%#x: the return address is written", name, at)
				}
				if d, known := in.StackDelta(); known && in.Kind == amd64.Other {
					depth -= d
				}
				switch {
				case in.Kind == amd64.Return:
					returns++
					if depth != 0 {
						t.Errorf("%s: +%#x: a return with the stack pointer %d bytes off", name, at, depth)
					}
				case in.Kind == amd64.IndirectJump:
					t.Errorf("%s: +%#x: an indirect jump", name, at)
				}
				if in.Ends() {
					depth = 0
				}
				at += int(in.Len)
			}
			if returns < 1 {
				t.Errorf("%s, lazy %v: no returns", name, lazy)
			}
		}
	}
}
