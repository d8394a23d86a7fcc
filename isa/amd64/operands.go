package amd64

import "encoding/binary"

// addressing says what follows a ModRM byte with a memory operand: the size of the displacement in the low bits.
type addressing uint8

const (
	addressingSIB  addressing = 1 << (iota + 4)
	addressingRIP             // the displacement is from the next instruction
	addressingSize addressing = 0x07
)

// addressings is indexed by ModRM.mod << 3 | ModRM.rm (Intel SDM vol. 2 §2.1.5, table 2-2). mod 3 is a register.
var addressings = [32]addressing{
	0, 0, 0, 0, addressingSIB, addressingRIP | 4, 0, 0,
	1, 1, 1, 1, addressingSIB | 1, 1, 1, 1,
	4, 4, 4, 4, addressingSIB | 4, 4, 4, 4,
}

// operands reads what follows the opcode, n being the offset of it, and settles length and kind. It returns as decode
// does.
//
// This and address are where the time goes. Displacement and immediate are read without asking for their sizes,
// since a branch that the processor guesses wrong costs more than both.
func (i *Inst) operands(c *[lookahead]byte, n int, s shape, rex REX) (int, bool) {
	if s&shapeModRM != 0 {
		b := c[n]
		n++
		i.HasModRM = true
		i.Reg = b>>3&7 | uint8(rex&RexR)<<1
		i.RM = b & 7
		i.Mod = b >> 6
		if s&(shapeGroup|shapeNoMem) != 0 {
			if s&shapeNoMem != 0 {
				b |= 0xC0
				i.Mod = 3
			}
			if s&shapeGroup != 0 && !i.validModRM() {
				return n, false
			}
		}
		if b < 0xC0 {
			n = i.address(c, n, b, rex)
		} else {
			i.RM = b&7 | uint8(rex&RexB)<<3
		}
	} else if s&shapeOpReg != 0 {
		i.Reg = i.Opcode&7 | uint8(rex&RexB)<<3
	}
	if i.Prefixes != 0 || s&shapeTail >= tailV || s&shapeFlow != 0 {
		return i.special(c, n, s)
	}
	size := uint8(s & shapeTailSize)
	i.Imm, i.ImmOff, i.ImmSize = signed(c, n, size), uint8(n), size
	n += int(size)
	i.Len = uint8(n)
	return n, n <= MaxLen
}

// signed reads a signed number of 0 to 4 bytes at offset n. There are always 4 to read.
func signed(c *[lookahead]byte, n int, size uint8) int64 {
	// The shift is in two steps since one by 64, for size 0, is slow in Go.
	unused := (63 - 8*size) & 63
	v := uint64(binary.LittleEndian.Uint32(c[n:n+4])) << unused << 1
	return int64(v) >> unused >> 1
}

// address reads the SIB byte and the displacement at offset n (Intel SDM vol. 2 §2.1.5, table 2-3) that the ModRM
// byte b asks for, and returns the offset behind them.
func (i *Inst) address(c *[lookahead]byte, n int, b byte, rex REX) int {
	a := addressings[b>>3&0x18|b&7]
	size := uint8(a & addressingSize)
	base := int8(b&7 | uint8(rex&RexB)<<3)
	i.HasMem = true
	if a > addressingSize {
		if a&addressingSIB != 0 {
			sib := c[n]
			n++
			base = int8(sib&7 | uint8(rex&RexB)<<3)
			if index := sib>>3&7 | uint8(rex&RexX)<<2; index != 4 || i.vectorIndex() {
				i.Index = int8(index)
				i.Scale = 1 << (sib >> 6)
			}
			if sib&7 == 5 && b < 0x40 {
				base = NoReg
				size = 4
			}
		} else {
			base = RIP
			i.RIPRelative = true
		}
	}
	i.Base = base
	i.Disp, i.DispOff, i.DispSize = int32(signed(c, n, size)), uint8(n), size
	return n + int(size)
}

// special ends what operands began, where prefixes, tail or opcode ask for more.
func (i *Inst) special(c *[lookahead]byte, n int, s shape) (int, bool) {
	t := s & shapeTail
	size := i.tailSize(t)
	var v int64
	if size == 8 {
		v = int64(binary.LittleEndian.Uint64(c[n : n+8]))
	} else {
		v = signed(c, n, size)
	}
	if s&shapeFlow != 0 {
		i.flow()
	}
	switch i.Kind {
	case Jump, CondJump, ShortLoop, Call, XBegin:
		i.Rel, i.RelOff, i.RelSize = int32(v), uint8(n), size
	default:
		i.Imm, i.ImmOff, i.ImmSize = i.extend(t, v, size), uint8(n), size
	}
	n += int(size)
	i.Len = uint8(n)
	return n, n <= MaxLen && (i.Prefixes&LockF0 == 0 || i.lockable())
}

// tailSize returns the size of a tail in bytes.
func (i *Inst) tailSize(t shape) uint8 {
	size := uint8(t & shapeTailSize)
	switch t {
	case tailZ:
		if i.word() {
			return 2
		}
	case tailV:
		switch {
		case i.wide():
			return 8
		case i.word():
			return 2
		}
	case tailMoffs:
		if i.Prefixes&Addr67 != 0 {
			return 4
		}
		return 8
	case tailTest8, tailTestZ:
		switch {
		case i.group() > 1:
			return 0
		case t == tailTestZ && i.word():
			return 2
		}
	case tailSSE4a:
		if i.Prefixes&(Opsize66|RepneF2) != 0 {
			return 2
		}
	}
	return size
}

// extend makes an immediate from a sign-extended one where it is something else.
func (i *Inst) extend(t shape, v int64, size uint8) int64 {
	switch t {
	case tailUByte:
		return int64(uint8(v))
	case tailWord, tailSSE4a:
		return int64(uint16(v))
	case tailEnter:
		return v & 0xFFFFFF
	case tailMoffs:
		i.HasMem = true
		if size == 4 {
			return int64(uint32(v))
		}
	}
	return v
}
