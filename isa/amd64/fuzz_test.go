package amd64

import (
	"bytes"
	"errors"
	"testing"
)

func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		"48 8b 05 10 00 00 00", "c4 e2 69 90 04 a1", "62 f1 7c 48 28 05 10 00 00 00", "8f ea 78 10 c1 04 08 00 00", "0f 0f c1 9e", "c7 f8 10 00 00 00",
		"66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", "f0 48 0f b1 0d 00 00 00 00", "c8 10 80 01", "62 f4 7c 48 28 c0", "",
	} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		i, err := Decode(code)
		if err != nil {
			if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrTruncated) {
				t.Fatalf("error %v", err)
			}
			if errors.Is(err, ErrTruncated) && len(code) >= MaxLen {
				t.Fatalf("% x: truncated", code)
			}
			return
		}
		if i.Len == 0 || i.Len > MaxLen || int(i.Len) > len(code) {
			t.Fatalf("% x: length %d", code, i.Len)
		}
		for _, part := range [][2]uint8{{i.OpcodeOff, 1}, {i.DispOff, i.DispSize}, {i.RelOff, i.RelSize}, {i.ImmOff, i.ImmSize}} {
			if part[1] != 0 && part[0]+part[1] > i.Len {
				t.Fatalf("% x: a part of %d bytes at %d lies outside", code, part[1], part[0])
			}
		}
		own := code[:i.Len]
		if again, err := Decode(own); err != nil || again != i {
			t.Fatalf("% x alone: %+v, %v; with what follows %+v", own, again, err, i)
		}
		if again, err := Decode(append(bytes.Clone(own), bytes.Repeat([]byte{0xCC}, 64)...)); err != nil || again != i {
			t.Fatalf("% x before int3: %+v, %v; before %+v", own, again, err, i)
		}
		for n := range own {
			if _, err := Decode(own[:n]); !errors.Is(err, ErrTruncated) {
				t.Fatalf("% x: the first %d bytes: %v", own, n, err)
			}
		}
		checkEffects(t, own, i)
	})
}

// checkEffects checks the answers about effects against each other.
func checkEffects(t *testing.T, code []byte, i Inst) {
	t.Helper()
	if i.FlagsRead() && i.FlagsWritten() {
		t.Fatalf("% x: reads flags and loses them unread", code)
	}
	delta, known := i.StackDelta()
	if !known && delta != 0 {
		t.Fatalf("% x: unknown stack change of %d", code, delta)
	}
	if known && delta != 0 && !i.WritesReg(RSP) {
		t.Fatalf("% x: stack change of %d without a write to rsp", code, delta)
	}
	if i.HasMem && i.Base >= 0 && i.Base < RIP && i.GPRRead()&Reg(i.Base).Mask() == 0 {
		t.Fatalf("% x: the base register is not read", code)
	}
	_, direct := i.Target(0)
	if direct != (i.Kind == Jump || i.Kind == CondJump || i.Kind == ShortLoop || i.Kind == Call || i.Kind == XBegin) {
		t.Fatalf("% x: a %v with a direct target: %v", code, i.Kind, direct)
	}
	if _, rip := i.MemTarget(0); rip != i.RIPRelative || rip && i.DispSize != 4 {
		t.Fatalf("% x: RIP-relative operand %v, displacement of %d bytes", code, rip, i.DispSize)
	}
	if i.IsNop() && (i.GPRWritten()&^i.GPRRead() != 0 || i.FlagsWritten() || i.MayFault()) {
		t.Fatalf("% x: a nop with an effect", code)
	}
}
