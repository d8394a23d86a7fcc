package step

import (
	"encoding/binary"
	"fmt"

	"github.com/callreel/callreel/cfi"
	"github.com/callreel/callreel/cfi/lint"
)

// maxReach is how far from a register the CFA is said to be: beyond, the register does not point to the frame.
const maxReach = 1 << 20

// wrongCFA makes the issue of a CFA that is computed as cfa.
func (c *comparison) wrongCFA(cfa uint64) *issue {
	row := &c.row.CFA
	i := &issue{kind: lint.WrongCFA, says: "cfa=" + row.Format(name), delta: c.call.cfa - cfa}
	reg, same := uint32(dwarfSP), row.Kind == cfi.RegOffset && row.Reg == dwarfSP
	if row.Kind == cfi.RegOffset && !same {
		if v, ok := c.register(uint32(row.Reg)); ok && c.call.cfa-v+maxReach < 2*maxReach {
			reg, same = uint32(row.Reg), true
		}
	}
	off := int64(c.call.cfa - c.regs.general[reg])
	i.truth = fmt.Sprintf("cfa=%s%+d", name(reg), off)
	switch {
	case !same:
		i.directive = fmt.Sprintf(".cfi_def_cfa %s, %d", name(reg), off)
		i.delta = uint64(maxReach)
	case c.row.Start < c.regs.pc-c.slide:
		i.adjust = off - row.Offset
	default:
		i.directive = fmt.Sprintf(".cfi_def_cfa_offset %d", off)
	}
	return i
}

// wrongRule makes the issue of a rule that does not give the truth.
func (c *comparison) wrongRule(bit int, rule *cfi.Rule, truth uint64) *issue {
	i := &issue{kind: lint.WrongRegister}
	who, asm := name(uint32(bit)), name(uint32(bit))
	if bit == bitRA {
		i.kind, who, asm = lint.WrongRA, "ra", asmRA
	}
	i.says = who + "=same"
	if rule.Kind != cfi.Unspecified {
		i.says = who + "=" + rule.Format(name)
	}
	if bit == dwarfSP {
		i.truth, i.directive = who+"=cfa+0", ".cfi_val_offset "+asm+", 0"
		return i
	}
	if v, ok := c.register(uint32(bit)); ok && v == truth {
		i.truth, i.directive = who+"=same", ".cfi_same_value "+asm
		return i
	}
	slots := c.slotsOf(truth)
	if bit == bitRA && len(slots) > 0 {
		slots = slots[:1] // where the call put it, unless the function has moved it
	}
	holders := c.holdersOf(truth)
	switch {
	case len(slots) == 1:
		i.truth = fmt.Sprintf("%s=[cfa%+d]", who, slots[0])
		i.directive = fmt.Sprintf(".cfi_offset %s, %d", asm, slots[0])
	case len(slots) == 0 && len(holders) == 1:
		i.truth = fmt.Sprintf("%s=%s", who, name(holders[0]))
		i.directive = fmt.Sprintf(".cfi_register %s, %s", asm, name(holders[0]))
	case len(slots) > 1 || len(holders) > 1:
		i.truth = who + " is not there" // which of the equal values is the saved one nobody can tell
	default:
		i.truth = who + " is not there, nor elsewhere in the frame"
	}
	return i
}

// maxFrame bounds how much of a frame is searched for a value, in bytes.
const maxFrame = 64 << 10

// slotsOf returns where in the frame a value is, relative to the CFA, from the top down.
func (c *comparison) slotsOf(value uint64) []int64 {
	low := c.regs.sp() - redZone
	if low >= c.cfa || c.cfa-low > maxFrame {
		low = c.cfa - maxFrame
	}
	low += (c.cfa - low) & 7
	frame := make([]byte, c.cfa-low)
	for len(frame) > 0 && c.read(low, frame) != nil { // a frame at the stack's end is read as far as there is any
		step := uint64(min(len(frame), 4096))
		low += step
		frame = frame[step:]
	}
	var slots []int64
	for at := len(frame) - 8; at >= 0; at -= 8 {
		if binary.LittleEndian.Uint64(frame[at:]) == value {
			slots = append(slots, int64(at-len(frame)))
		}
	}
	return slots
}

// holdersOf returns the registers that hold a value.
func (c *comparison) holdersOf(value uint64) []uint32 {
	var list []uint32
	for reg, v := range c.regs.general {
		if v == value && reg != dwarfSP {
			list = append(list, uint32(reg))
		}
	}
	return list
}
