package amd64

import "errors"

// The errors of Decode. They carry nothing, so that a scan over data does not allocate; the caller knows the address.
var (
	// ErrTruncated means that the bytes end before the instruction does.
	ErrTruncated = errors.New("instruction is cut off by the end of the bytes")
	// ErrInvalid means that the bytes are no instruction in 64-bit mode, or one longer than MaxLen.
	ErrInvalid = errors.New("not an x86-64 instruction")
)

// lookahead is how many bytes the decoder may look at without asking whether they are there: 14 prefixes, an EVEX
// prefix, opcode, ModRM, SIB and displacement, and then 8 bytes whatever the size of the immediate.
const lookahead = 40

// Decode reads the instruction at the start of code; bytes behind it have no effect. The error is ErrTruncated or
// ErrInvalid, and the Inst is then empty. Decode does not allocate.
func Decode(code []byte) (inst Inst, err error) {
	err = DecodeTo(&inst, code)
	return inst, err
}

// DecodeTo is Decode into a variable of the caller's. A loop over much code is faster with it, for an Inst that was
// only just written is slow to copy.
func DecodeTo(inst *Inst, code []byte) error {
	if len(code) < lookahead {
		return inst.decodeShort(code)
	}
	if _, ok := inst.decode((*[lookahead]byte)(code)); !ok {
		*inst = Inst{}
		return ErrInvalid
	}
	return nil
}

// decodeShort decodes near the end of the bytes. If what was decided was decided with bytes that are not there, then
// the instruction is cut off.
func (i *Inst) decodeShort(code []byte) error {
	var padded [lookahead]byte
	copy(padded[:], code)
	n, ok := i.decode(&padded)
	if ok && n <= len(code) {
		return nil
	}
	*i = Inst{}
	if n > len(code) && len(code) < MaxLen {
		return ErrTruncated
	}
	return ErrInvalid
}

// decode reads prefixes and opcode and finds the shape of the rest. It returns how many bytes it went by: the length
// of the instruction, or if there is none those that show it.
func (i *Inst) decode(c *[lookahead]byte) (n int, ok bool) {
	*i = Inst{Base: NoReg, Index: NoReg}
	opcode := c[0]
	var rex REX
	if opcode&0xF0 == 0x40 { // REX alone is by far the most frequent prefix
		rex = REX(opcode)
		opcode = c[1]
		i.REX = rex
		n = 1
	}
	s := primaryShapes[opcode]
	if s&shapePrefix != 0 {
		if n = i.prefixes(c); n == MaxLen {
			return n, false
		}
		opcode = c[n]
		s = primaryShapes[opcode]
		rex = i.REX
	}
	n++
	if s&(shapeEscape|shapeInvalid) != 0 {
		switch opcode {
		case 0x0F:
			return i.decode0F(c, n)
		case 0xC4:
			return i.decodeVEX3(c, n)
		case 0xC5:
			return i.decodeVEX2(c, n)
		case 0x62:
			return i.decodeEVEX(c, n)
		case 0x8F:
			if c[n]&0x1F >= MapXOP8 {
				return i.decodeXOP(c, n)
			}
			s = mg // pop
		default:
			return n, false
		}
	}
	i.Opcode = opcode
	i.OpcodeOff = uint8(n - 1)
	return i.operands(c, n, s, rex)
}

// prefixes reads all prefixes from the start and returns the offset behind them, or MaxLen if there is no end to them.
func (i *Inst) prefixes(c *[lookahead]byte) (n int) {
	i.REX = 0
	for n < MaxLen && primaryShapes[c[n]]&shapePrefix != 0 {
		i.prefix(c[n])
		n++
	}
	return n
}

// prefix takes note of a prefix byte. A REX prefix counts only directly before the opcode (Intel SDM vol. 2 §2.2.1).
func (i *Inst) prefix(b byte) {
	if b&0xF0 == 0x40 {
		i.REX = REX(b)
		return
	}
	i.REX = 0
	switch b {
	case 0x66:
		i.Prefixes |= Opsize66
	case 0x67:
		i.Prefixes |= Addr67
	case 0xF0:
		i.Prefixes |= LockF0
	case 0xF2:
		i.Prefixes = i.Prefixes&^RepF3 | RepneF2
	case 0xF3:
		i.Prefixes = i.Prefixes&^RepneF2 | RepF3
	case 0x26:
		i.Prefixes |= SegES26
	case 0x2E:
		i.Prefixes |= SegCS2E
	case 0x36:
		i.Prefixes |= SegSS36
	case 0x3E:
		i.Prefixes |= SegDS3E
	case 0x64:
		i.Prefixes = i.Prefixes&^SegGS | SegFS
	case 0x65:
		i.Prefixes = i.Prefixes&^SegFS | SegGS
	}
}

// mandatoryPrefix returns the prefix that selects among the instructions of one opcode, numbered as pp. F2 and F3 go
// before 66.
func (i *Inst) mandatoryPrefix() uint8 {
	switch {
	case i.Prefixes&(Opsize66|RepF3|RepneF2) == 0:
		return 0
	case i.Prefixes&RepneF2 != 0:
		return ppF2
	case i.Prefixes&RepF3 != 0:
		return ppF3
	}
	return pp66
}

// decode0F reads an opcode of the maps behind 0F; n is the offset after that byte.
func (i *Inst) decode0F(c *[lookahead]byte, n int) (int, bool) {
	opcode := c[n]
	n++
	s := shapes0F[opcode]
	i.Map = Map0F
	if s&shapeEscape != 0 {
		switch opcode {
		case 0x0F:
			return i.decode3DNow(c, n)
		case 0x38:
			i.Map, s = Map0F38, shape0F38
		default:
			i.Map, s = Map0F3A, shape0F3A
		}
		opcode = c[n]
		n++
	}
	if s&shapeInvalid != 0 || !legacyPrefixes[i.Map].allows(opcode, i.mandatoryPrefix()) {
		return n, false
	}
	i.Opcode = opcode
	i.OpcodeOff = uint8(n - 1)
	return i.operands(c, n, s, i.REX)
}

// decode3DNow reads an instruction whose opcode stands behind the operands (AMD64 APM vol. 3 appendix A.1.2).
func (i *Inst) decode3DNow(c *[lookahead]byte, n int) (int, bool) {
	i.Map = Map3DNow
	n, ok := i.operands(c, n, shapeModRM|tailByte, i.REX)
	i.OpcodeOff, i.Opcode = i.ImmOff, uint8(i.Imm)
	i.Imm, i.ImmOff, i.ImmSize = 0, 0, 0
	return n, ok && now3D[i.Opcode>>6]>>(i.Opcode&63)&1 != 0
}

// now3D is the set of 3DNow! opcodes (AMD64 APM vol. 3 appendix A.1.2, table A-13).
var now3D = [4]uint64{
	1<<0x0C | 1<<0x0D | 1<<0x1C | 1<<0x1D,
	0,
	1<<(0x8A-128) | 1<<(0x8E-128) | 1<<(0x90-128) | 1<<(0x94-128) | 1<<(0x96-128) | 1<<(0x97-128) | 1<<(0x9A-128) |
		1<<(0x9E-128) | 1<<(0xA0-128) | 1<<(0xA4-128) | 1<<(0xA6-128) | 1<<(0xA7-128) | 1<<(0xAA-128) | 1<<(0xAE-128) |
		1<<(0xB0-128) | 1<<(0xB4-128) | 1<<(0xB6-128) | 1<<(0xB7-128) | 1<<(0xBB-128) | 1<<(0xBF-128),
	0,
}
