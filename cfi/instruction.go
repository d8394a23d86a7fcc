package cfi

import (
	"errors"
	"fmt"
)

// opcode is a call frame instruction (DWARF 5 §6.4.2 and §7.24; GNU and AArch64
// extensions). The three with an operand in their low six bits have it cleared.
type opcode uint8

const (
	opNop              opcode = 0x00
	opSetLoc           opcode = 0x01
	opAdvanceLoc1      opcode = 0x02
	opAdvanceLoc2      opcode = 0x03
	opAdvanceLoc4      opcode = 0x04
	opOffsetExtended   opcode = 0x05
	opRestoreExtended  opcode = 0x06
	opUndefined        opcode = 0x07
	opSameValue        opcode = 0x08
	opRegister         opcode = 0x09
	opRememberState    opcode = 0x0a
	opRestoreState     opcode = 0x0b
	opDefCFA           opcode = 0x0c
	opDefCFARegister   opcode = 0x0d
	opDefCFAOffset     opcode = 0x0e
	opDefCFAExpression opcode = 0x0f
	opExpression       opcode = 0x10
	opOffsetExtendedSF opcode = 0x11
	opDefCFASF         opcode = 0x12
	opDefCFAOffsetSF   opcode = 0x13
	opValOffset        opcode = 0x14
	opValOffsetSF      opcode = 0x15
	opValExpression    opcode = 0x16
	opAdvanceLoc8      opcode = 0x1d // MIPS
	opNegateRAWithPC   opcode = 0x2c // AArch64
	opNegateRAState    opcode = 0x2d // AArch64; SPARC's window_save is not supported
	opGNUArgsSize      opcode = 0x2e
	opGNUNegOffset     opcode = 0x2f
	opAdvanceLoc       opcode = 0x40
	opOffset           opcode = 0x80
	opRestore          opcode = 0xc0
)

const (
	// maxRegister is the highest register number: RISC-V's CSRs, the highest in
	// use, end at 8191.
	maxRegister = 0xffff

	// maxRegs bounds the rules of one row; AArch64, which has the most, names
	// some 110 registers.
	maxRegs = 128
)

var errOperand = errors.New("operand ends too early or is too large")

// instruction is one decoded instruction. Factors are applied: delta is an advance
// in bytes, off an offset in bytes, loc an address.
type instruction struct {
	op    opcode
	reg   uint32
	reg2  uint32
	off   int64
	delta uint64
	loc   uint64
	block []byte
}

// next decodes one instruction of a program that belongs to cie; c stands at it.
func (cie *CIE) next(c *cursor, in *instruction) error {
	b := c.data[c.at]
	c.at++
	ok := true
	switch in.op = opcode(b & 0xc0); in.op {
	case opAdvanceLoc:
		in.delta = uint64(b&0x3f) * cie.CodeAlign
		return nil
	case opOffset:
		in.reg = uint32(b & 0x3f)
		in.off, ok = cie.factored(c)
	case opRestore:
		in.reg = uint32(b & 0x3f)
		return nil
	default:
		in.op = opcode(b)
		return cie.extended(c, in)
	}
	if !ok {
		return errOperand
	}
	return nil
}

// extended decodes the operands of the instructions that have a byte of their own.
func (cie *CIE) extended(c *cursor, in *instruction) error {
	ok, ok2 := true, true
	switch in.op {
	case opNop, opRememberState, opRestoreState, opNegateRAState, opNegateRAWithPC:
	case opSetLoc:
		b := cie.source.bases
		b.Size = cie.addrSize
		in.loc, ok = c.pointer(cie.fdeEncoding, &b)
	case opAdvanceLoc1:
		var v uint8
		v, ok = c.u8()
		in.delta = uint64(v) * cie.CodeAlign
	case opAdvanceLoc2:
		var v uint16
		v, ok = c.u16()
		in.delta = uint64(v) * cie.CodeAlign
	case opAdvanceLoc4:
		var v uint32
		v, ok = c.u32()
		in.delta = uint64(v) * cie.CodeAlign
	case opAdvanceLoc8:
		in.delta, ok = c.u64()
		in.delta *= cie.CodeAlign
	case opRestoreExtended, opUndefined, opSameValue, opDefCFARegister:
		in.reg, ok = register(c)
	case opRegister:
		in.reg, ok = register(c)
		in.reg2, ok2 = register(c)
	case opDefCFA:
		in.reg, ok = register(c)
		in.off, ok2 = unfactored(c)
	case opDefCFASF:
		in.reg, ok = register(c)
		in.off, ok2 = cie.factoredSigned(c)
	case opDefCFAOffset:
		in.off, ok = unfactored(c)
	case opDefCFAOffsetSF:
		in.off, ok = cie.factoredSigned(c)
	case opOffsetExtended, opValOffset:
		in.reg, ok = register(c)
		in.off, ok2 = cie.factored(c)
	case opOffsetExtendedSF, opValOffsetSF:
		in.reg, ok = register(c)
		in.off, ok2 = cie.factoredSigned(c)
	case opGNUNegOffset:
		in.reg, ok = register(c)
		in.off, ok2 = cie.factored(c)
		in.off = -in.off
	case opGNUArgsSize:
		in.delta, ok = c.uleb()
	case opDefCFAExpression:
		in.block, ok = block(c)
	case opExpression, opValExpression:
		in.reg, ok = register(c)
		in.block, ok2 = block(c)
	default:
		return fmt.Errorf("unknown instruction %#x", uint8(in.op))
	}
	if !ok || !ok2 {
		return errOperand
	}
	return nil
}

func register(c *cursor) (uint32, bool) {
	v, ok := c.uleb()
	return uint32(v), ok && v <= maxRegister
}

func unfactored(c *cursor) (int64, bool) {
	v, ok := c.uleb()
	return int64(v), ok
}

func (cie *CIE) factored(c *cursor) (int64, bool) {
	v, ok := c.uleb()
	return int64(v) * cie.DataAlign, ok
}

func (cie *CIE) factoredSigned(c *cursor) (int64, bool) {
	v, ok := c.sleb()
	return v * cie.DataAlign, ok
}

func block(c *cursor) ([]byte, bool) {
	n, ok := c.uleb()
	if !ok {
		return nil, false
	}
	return c.bytes(n)
}

// isAdvance says whether the instruction ends a row.
func (op opcode) isAdvance() bool {
	switch op {
	case opAdvanceLoc, opAdvanceLoc1, opAdvanceLoc2, opAdvanceLoc4, opAdvanceLoc8, opSetLoc:
		return true
	}
	return false
}
