package arm64

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/callreel/callreel/isa"
)

// Asm appends A64 machine code that will run at a known address. It knows just the instructions that stubs are made of; each
// method encodes one of them (Arm Architecture Reference Manual, chapter C6).
//
// Registers are the hardware's numbers: 0 to 30, and 31, which is the stack pointer or zero as the instruction has it. Names with a W
// in them are of the 32-bit forms, which make the upper half of what they write zero.
//
// Errors (a branch too far, an unplaced label, an operand that has no encoding) are kept and given by Finish, so that straight-line
// code stays readable. The zero Asm is not usable: call NewAsm.
type Asm struct {
	base   uint64
	buf    []byte
	labels []int // offset of each label, -1 while unplaced
	fixups []asmFixup
	err    error
}

// Label names a place in the code of one Asm.
type Label int

// reach is the kind of field that holds a distance.
type reach uint8

const (
	reach26    reach = iota // B, BL: ±128 MiB
	reach19                 // B.cond, CBZ, literals: ±1 MiB
	reach14                 // TBZ: ±32 KiB
	reach21                 // ADR: ±1 MiB, in bytes
	reachADR4K              // ADRP: ±4 GiB, in pages
)

type asmFixup struct {
	at    int // offset of the instruction
	label Label
	reach reach
}

// ErrAsmRange is in the chain of Finish's error when a target or an operand is out of an instruction's reach.
var ErrAsmRange = errors.New("out of reach")

// ErrAsmOperand is in the chain of Finish's error when an instruction can't have an operand.
var ErrAsmOperand = errors.New("not an operand of this instruction")

// NewAsm returns an assembler for code that will stand at base, a multiple of 4. It appends to buf, whose length must be 0.
func NewAsm(base uint64, buf []byte) *Asm { return &Asm{base: base, buf: buf[:0]} }

// PC is the address of the next byte.
func (a *Asm) PC() uint64 { return a.base + uint64(len(a.buf)) }

// Len is the number of bytes so far.
func (a *Asm) Len() int { return len(a.buf) }

// Base is the address of the first byte.
func (a *Asm) Base() uint64 { return a.base }

// Since is the code from offset off on. It may be changed until more is appended.
func (a *Asm) Since(off int) []byte { return a.buf[off:] }

// Extend appends n bytes as they are in the buffer, and returns them to be filled in. They may be until more is appended.
func (a *Asm) Extend(n int) []byte {
	from := len(a.buf)
	a.buf = slices.Grow(a.buf, n)[:from+n]
	return a.buf[from:]
}

// Space is what the buffer has from one offset up to another, both behind the code so far, for another Asm; Extend takes over what
// that has made. The buffer that NewAsm was given must reach so far.
func (a *Asm) Space(from, to int) []byte { return a.buf[from:from:to] }

// Finish resolves labels and returns the code.
func (a *Asm) Finish() ([]byte, error) {
	a.Resolve()
	return a.buf, a.err
}

// Resolve resolves all labels so far and forgets them: they must have been placed, and are not to be used any more.
func (a *Asm) Resolve() {
	for _, f := range a.fixups {
		to := a.labels[f.label]
		if to < 0 {
			a.fail(fmt.Errorf("arm64: label %d used at %#x was never placed", f.label, a.base+uint64(f.at)))
			break
		}
		word := binary.LittleEndian.Uint32(a.buf[f.at:])
		at := a.base + uint64(f.at)
		binary.LittleEndian.PutUint32(a.buf[f.at:], word|a.distance(f.reach, at, a.base+uint64(to)))
	}
	a.fixups, a.labels = a.fixups[:0], a.labels[:0]
}

// NewLabel makes a label to be placed later.
func (a *Asm) NewLabel() Label {
	a.labels = append(a.labels, -1)
	return Label(len(a.labels) - 1)
}

// Place puts the label here.
func (a *Asm) Place(l Label) { a.labels[l] = len(a.buf) }

// Placed is the address of a label that has been placed.
func (a *Asm) Placed(l Label) uint64 { return a.base + uint64(a.labels[l]) }

// Raw appends bytes as they are: data.
func (a *Asm) Raw(b ...byte) { a.buf = append(a.buf, b...) }

// Word appends an instruction as it is.
func (a *Asm) Word(w uint32) { a.buf = binary.LittleEndian.AppendUint32(a.buf, w) }

// Data64 appends eight bytes of data.
func (a *Asm) Data64(v uint64) { a.buf = binary.LittleEndian.AppendUint64(a.buf, v) }

// Align fills with brk #0 up to a multiple of n, a power of two not below 4.
func (a *Asm) Align(n uint64) {
	for a.PC()&(n-1) != 0 {
		a.Brk(0)
	}
}

// distance is the field that leads from one address to another.
func (a *Asm) distance(r reach, from, to uint64) uint32 {
	d, unit, width := int64(to-from), int64(4), 0
	switch r {
	case reach26:
		width = 26
	case reach19:
		width = 19
	case reach14:
		width = 14
	case reach21:
		width, unit = 21, 1
	case reachADR4K:
		width, unit = 21, 1<<12
		d = int64(to&^(1<<12-1) - from&^(1<<12-1))
	}
	n := d / unit
	if d%unit != 0 || n < -1<<(width-1) || n >= 1<<(width-1) {
		a.fail(fmt.Errorf("arm64: from %#x to %#x: %w", from, to, ErrAsmRange))
		return 0
	}
	field := uint32(n) & (1<<width - 1)
	switch r {
	case reach26:
		return field
	case reach21, reachADR4K:
		return field&3<<29 | field>>2<<5
	}
	return field << 5
}

// to appends an instruction that leads to an address.
func (a *Asm) to(word uint32, r reach, addr uint64) { a.Word(word | a.distance(r, a.PC(), addr)) }

// toLabel appends an instruction that leads to a label.
func (a *Asm) toLabel(word uint32, r reach, l Label) {
	a.fixups = append(a.fixups, asmFixup{len(a.buf), l, r})
	a.Word(word)
}

// fail keeps the first error for Finish.
func (a *Asm) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// refuse notes that an instruction here can't have an operand.
func (a *Asm) refuse(what string, v any) {
	a.fail(fmt.Errorf("arm64: at %#x: %s %v: %w", a.PC(), what, v, ErrAsmOperand))
}

// rd, rn, rt2, ra and rm are registers in an instruction's fields.
func rd(r isa.Reg) uint32  { return uint32(r & 31) }
func rn(r isa.Reg) uint32  { return uint32(r&31) << 5 }
func rt2(r isa.Reg) uint32 { return uint32(r&31) << 10 }
func rm(r isa.Reg) uint32  { return uint32(r&31) << 16 }
