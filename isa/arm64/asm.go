package arm64

import (
	"encoding/binary"
	"errors"
	"fmt"

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
	isa.Code
	fixups []asmFixup
}

// Label names a place in the code of one Asm.
type Label = isa.Label

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
func NewAsm(base uint64, buf []byte) *Asm {
	a := new(Asm)
	a.Start(base, buf)
	return a
}

// Finish resolves labels and returns the code.
func (a *Asm) Finish() ([]byte, error) {
	a.Resolve()
	return a.Made()
}

// Resolve resolves all labels so far and forgets them: they must have been placed, and are not to be used any more.
func (a *Asm) Resolve() {
	for _, f := range a.fixups {
		to, ok := a.Find(f.label, f.at)
		if !ok {
			break
		}
		at := a.Since(f.at)
		word := binary.LittleEndian.Uint32(at)
		binary.LittleEndian.PutUint32(at, word|a.distance(f.reach, a.Base()+uint64(f.at), a.Base()+uint64(to)))
	}
	a.fixups = a.fixups[:0]
	a.Forget()
}

// Word appends an instruction as it is.
func (a *Asm) Word(w uint32) { a.Put32(w) }

// Data64 appends eight bytes of data.
func (a *Asm) Data64(v uint64) { a.Put64(v) }

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
		a.Fail(fmt.Errorf("arm64: from %#x to %#x: %w", from, to, ErrAsmRange))
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
	a.fixups = append(a.fixups, asmFixup{a.Len(), l, r})
	a.Word(word)
}

// refuse notes that an instruction here can't have an operand.
func (a *Asm) refuse(what string, v any) {
	a.Fail(fmt.Errorf("arm64: at %#x: %s %v: %w", a.PC(), what, v, ErrAsmOperand))
}

// rd, rn, rt2, ra and rm are registers in an instruction's fields.
func rd(r isa.Reg) uint32  { return uint32(r & 31) }
func rn(r isa.Reg) uint32  { return uint32(r&31) << 5 }
func rt2(r isa.Reg) uint32 { return uint32(r&31) << 10 }
func rm(r isa.Reg) uint32  { return uint32(r&31) << 16 }
