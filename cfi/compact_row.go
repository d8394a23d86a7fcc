package cfi

import (
	"encoding/binary"
	"fmt"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/object"
)

// compactDWARFOffset is the field of an offset in __eh_frame, on both architectures.
const compactDWARFOffset = 0x00ffffff

// The modes and fields of x86-64 encodings (mach-o/compact_unwind_encoding.h).
const (
	x64Frame     = 0x01000000 // a frame at rbp
	x64Immediate = 0x02000000 // no frame pointer; the size is in the encoding
	x64Indirect  = 0x03000000 // no frame pointer; the size is in a sub instruction
	x64DWARF     = 0x04000000

	x64Slots = 5 // registers that a frame at rbp can save
)

// The modes and fields of arm64 encodings.
const (
	a64Frameless = 0x02000000
	a64DWARF     = 0x03000000
	a64Frame     = 0x04000000
)

// DWARF says whether an entry refers to an FDE of __eh_frame, and at which offset
// of that section. The offset is 0 when it was too large for the linker to write.
func (t *CompactTable) DWARF(e *CompactEntry) (offset uint64, ok bool) {
	mode := uint32(x64DWARF)
	if t.opt.Arch == object.ARM64 {
		mode = a64DWARF
	}
	return uint64(e.Encoding & compactDWARFOffset), e.Encoding&compactMode == mode
}

// FDE returns the FDE that an entry refers to (see DWARF).
func (t *CompactTable) FDE(e *CompactEntry) (*FDE, error) {
	offset, ok := t.DWARF(e)
	switch {
	case !ok:
		return nil, t.errorf("entry at %#x: encoding %#x refers to no FDE", e.Start, e.Encoding)
	case t.opt.EHFrame == nil:
		return nil, t.errorf("entry at %#x: encoding %#x refers to __eh_frame, of which there is none", e.Start, e.Encoding)
	}
	if f, err := t.opt.EHFrame.FDEAt(offset); err == nil && f.Contains(e.Start) {
		return f, nil
	}
	if f, ok := t.opt.EHFrame.Find(e.Start); ok {
		return f, nil
	}
	return nil, t.errorf("entry at %#x: no FDE at offset %#x of __eh_frame describes it", e.Start, offset)
}

// Row translates an entry to the row that holds in the function's body, after its
// prologue and before its epilogue, for which compact encodings say nothing.
// An entry that refers to an FDE has no row of its own: see FDE.
func (t *CompactTable) Row(e *CompactEntry) (Row, error) {
	var r Row
	var err error
	if t.opt.Arch == object.ARM64 {
		r, err = arm64Row(e.Encoding)
	} else {
		r, err = t.x64Row(e)
	}
	if err != nil {
		return Row{}, t.errorf("entry at %#x: encoding %#x: %w", e.Start, e.Encoding, err)
	}
	r.Start, r.End = e.Start, e.End
	return r, nil
}

// saved adds the rule that a register stands at CFA+off.
func (r *Row) saved(reg uint32, off int64) { r.set(reg, Rule{Kind: Offset, Offset: off}) }

// x64Row translates an encoding of x86-64.
func (t *CompactTable) x64Row(e *CompactEntry) (Row, error) {
	enc := e.Encoding
	r := Row{RAReg: amd64.DWARFReturnAddress}
	r.saved(r.RAReg, -8)
	switch enc & compactMode {
	case x64Frame:
		return x64FrameRow(r, enc)
	case x64Immediate:
		return x64FramelessRow(r, enc, 8*int64(enc>>16&0xff))
	case x64Indirect:
		size, err := t.sizeInCode(e)
		if err != nil {
			return r, err
		}
		return x64FramelessRow(r, enc, size+8*int64(enc>>13&7))
	case x64DWARF:
		return r, fmt.Errorf("the frame is described by an FDE")
	}
	return r, fmt.Errorf("mode %d is not known", enc&compactMode>>24)
}

// x64FrameRow translates a frame at rbp: five registers at most stand from
// offset words below rbp on upwards.
func x64FrameRow(r Row, enc uint32) (Row, error) {
	const fp = 6
	r.CFA = Rule{Kind: RegOffset, Reg: fp, Offset: 16}
	r.saved(fp, -16)
	at := -16 - 8*int64(enc>>16&0xff)
	for k := range x64Slots {
		n := enc >> (3 * k) & 7
		if n == 0 {
			continue
		}
		reg, ok := x64Saved(n)
		if !ok || reg == fp {
			return r, fmt.Errorf("register %d of 5 is number %d", k+1, n)
		}
		r.saved(reg, at+8*int64(k))
	}
	return r, nil
}

// sizeInCode reads the frame's size from the instruction that makes the frame.
func (t *CompactTable) sizeInCode(e *CompactEntry) (int64, error) {
	if t.opt.Code == nil {
		return 0, ErrNoCode
	}
	at := e.Start + uint64(e.Encoding>>16&0xff)
	b, err := t.opt.Code(at, 4)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNoCode, err)
	}
	if len(b) < 4 {
		return 0, ErrNoCode
	}
	return int64(binary.LittleEndian.Uint32(b)), nil
}

// x64FramelessRow translates a frame of size bytes, the return address included,
// below which nothing points. The registers were pushed right after the return address.
func x64FramelessRow(r Row, enc uint32, size int64) (Row, error) {
	const sp = 7
	r.CFA = Rule{Kind: RegOffset, Reg: sp, Offset: size}
	count := int(enc >> 10 & 7)
	order, err := permutation(count, enc&0x3ff)
	if err != nil {
		return r, err
	}
	for k := range count {
		reg, _ := x64Saved(order[k])
		r.saved(reg, -8-8*int64(count-k))
	}
	return r, nil
}

// x64Saved gives the DWARF number of a register that encodings can name: rbx,
// r12 to r15 and rbp.
func x64Saved(n uint32) (uint32, bool) {
	if n < 1 || n > 6 {
		return 0, false
	}
	return [...]uint32{3, 12, 13, 14, 15, 6}[n-1], true
}

// permutation tells which of the six registers were pushed in which order: the
// number counts in a system whose k-th digit selects among the registers that the
// digits before have left.
func permutation(count int, number uint32) (order [6]uint32, err error) {
	const registers = 6
	if count > registers {
		return order, fmt.Errorf("%d registers saved, of 6", count)
	}
	// Six registers have the digits of five: only one is left.
	digits := min(count, registers-1)
	weight := uint32(1)
	for k := range digits - 1 {
		weight *= uint32(registers - digits + 1 + k)
	}
	used := [registers + 1]bool{}
	for k := range count {
		digit := uint32(0)
		if k < digits {
			digit = number / weight
			number %= weight
			if left := uint32(registers - 1 - k); left > 1 && k+1 < digits {
				weight /= left
			}
		}
		if order[k] = unused(&used, digit); order[k] == 0 {
			return order, fmt.Errorf("permutation %d of %d registers does not exist", number, count)
		}
	}
	return order, nil
}

// unused takes the register that so many unused ones precede, 0 when there is none.
func unused(used *[7]bool, before uint32) uint32 {
	for n := uint32(1); n < uint32(len(used)); n++ {
		if used[n] {
			continue
		}
		if before == 0 {
			used[n] = true
			return n
		}
		before--
	}
	return 0
}

// arm64Pairs are the pairs of registers that encodings can name, in the order in
// which they stand below the frame record: bit, first register.
var arm64Pairs = [...]struct {
	bit   uint32
	first uint32
}{
	{0x001, arm64.X19}, {0x002, 21}, {0x004, 23}, {0x008, 25}, {0x010, 27},
	{0x100, arm64.V8}, {0x200, arm64.V8 + 2}, {0x400, arm64.V8 + 4}, {0x800, arm64.V8 + 6},
}

// arm64Row translates an encoding of arm64.
func arm64Row(enc uint32) (Row, error) {
	r := Row{RAReg: arm64.LR}
	at := int64(0)
	switch enc & compactMode {
	case a64Frameless:
		r.CFA = Rule{Kind: RegOffset, Reg: arm64.SP, Offset: 16 * int64(enc>>12&0xfff)}
	case a64Frame:
		r.CFA = Rule{Kind: RegOffset, Reg: arm64.FP, Offset: 16}
		r.saved(arm64.FP, -16)
		r.saved(arm64.LR, -8)
		at = -16
	case a64DWARF:
		return r, fmt.Errorf("the frame is described by an FDE")
	default:
		return r, fmt.Errorf("mode %d is not known", enc&compactMode>>24)
	}
	for _, p := range arm64Pairs {
		if enc&p.bit != 0 {
			r.saved(p.first, at-8)
			r.saved(p.first+1, at-16)
			at -= 16
		}
	}
	return r, nil
}
