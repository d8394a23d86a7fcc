package arm64

import (
	"encoding/binary"
	"errors"
	"testing"
)

func FuzzDecode(f *testing.F) {
	for _, w := range []uint32{0xD503233F, 0xD65F03C0, 0x94000001, 0x90000000, 0xA9BF7BFD, 0x58000041, 0xD5033FDF, 0x1E602000, 0x11112FFF, 0} {
		f.Add(binary.LittleEndian.AppendUint32(nil, w))
	}
	f.Fuzz(func(t *testing.T, code []byte) {
		i, err := Decode(code)
		if len(code) < Len {
			if !errors.Is(err, ErrTruncated) || i != (Inst{}) {
				t.Fatalf("% x: %+v, %v", code, i, err)
			}
			return
		}
		if err != nil {
			if !errors.Is(err, ErrInvalid) || i != (Inst{}) {
				t.Fatalf("% x: %+v, %v", code, i, err)
			}
			return
		}
		checkEffects(t, i)
	})
}

// checkEffects checks the answers about an instruction against each other.
func checkEffects(t *testing.T, i Inst) {
	t.Helper()
	if i.FlagsWritten() && (i.FlagsRead() || !i.FlagsChanged()) {
		t.Fatalf("%08x: reads flags and loses them unread", i.Word)
	}
	if delta, known := i.StackDelta(); delta != 0 && (!known || !i.WritesReg(SP)) {
		t.Fatalf("%08x: stack change of %d, known %v", i.Word, delta, known)
	}
	if i.Base != NoReg && !i.ReadsReg(i.Base) || i.Writeback && !i.WritesReg(i.Base) || i.PostIndex && !i.Writeback {
		t.Fatalf("%08x: base %v isn't read, or not written back", i.Word, i.Base)
	}
	const pc = 1 << 40
	target, direct := i.Target(pc)
	place, named := i.MemTarget(pc)
	if direct && named || (direct || named) && !i.PCRelative {
		t.Fatalf("%08x: leads to %#x, names %#x", i.Word, target, place)
	}
	if direct != (i.Kind == Jump || i.Kind == CondJump || i.Kind == Call) {
		t.Fatalf("%08x: a %v with a direct target: %v", i.Word, i.Kind, direct)
	}
	if direct && (target&3 != 0 || int64(target)-pc >= 1<<27 || int64(target)-pc < -1<<27) {
		t.Fatalf("%08x: leads to %#x", i.Word, target)
	}
	if i.Movable() && (i.PCRelative || i.Kind == Call || i.Kind == IndirectCall) {
		t.Fatalf("%08x: moved though it depends on its place", i.Word)
	}
	if i.IsNop() && (i.GPRWritten() != 0 || i.FlagsChanged() || i.MayFault()) {
		t.Fatalf("%08x: a nop with an effect", i.Word)
	}
}
