package amd64

// noVectorPrefix are the prefixes that may not stand before VEX, EVEX and XOP; nor may REX (Intel SDM vol. 2 §2.3.2 and §2.3.3).
const noVectorPrefix = Opsize66 | LockF0 | RepF3 | RepneF2

// vectorPrefix is what VEX, EVEX and XOP have in common, read from their payload.
type vectorPrefix struct {
	encoding Encoding
	opmap    uint8
	pp       uint8
}

// decodeVEX2 reads an instruction with the prefix C5 (Intel SDM vol. 2 §2.3.5); n is the offset after that byte.
func (i *Inst) decodeVEX2(c *[lookahead]byte, n int) (int, bool) {
	if i.REX != 0 || i.Prefixes&noVectorPrefix != 0 {
		return n, false
	}
	b := c[n]
	i.REX = REX(^b>>7) * RexR
	i.V = ^b >> 3 & 15
	return i.decodeVector(c, n+1, vectorPrefix{VEX, Map0F, b & 3})
}

// decodeVEX3 reads an instruction with the prefix C4 (Intel SDM vol. 2 §2.3.5); n is the offset after that byte.
func (i *Inst) decodeVEX3(c *[lookahead]byte, n int) (int, bool) {
	opmap := c[n] & 0x1F
	if i.REX != 0 || i.Prefixes&noVectorPrefix != 0 || opmap < Map0F || opmap > Map0F3A {
		return n + 1, false
	}
	return i.decodeThreeByte(c, n, vectorPrefix{encoding: VEX, opmap: opmap})
}

// decodeXOP reads an instruction with AMD's prefix 8F, which is laid out as C4 is; n is the offset after that byte.
func (i *Inst) decodeXOP(c *[lookahead]byte, n int) (int, bool) {
	opmap := c[n] & 0x1F
	if i.REX != 0 || i.Prefixes&noVectorPrefix != 0 || opmap < MapXOP8 || opmap > MapXOPA {
		return n + 1, false
	}
	return i.decodeThreeByte(c, n, vectorPrefix{encoding: XOP, opmap: opmap})
}

// decodeThreeByte reads the two payload bytes of C4 and 8F at offset n, and the rest.
func (i *Inst) decodeThreeByte(c *[lookahead]byte, n int, p vectorPrefix) (int, bool) {
	b0, b1 := c[n], c[n+1]
	i.REX = REX(^b0>>5) | REX(b1>>7)*RexW
	i.V = ^b1 >> 3 & 15
	p.pp = b1 & 3
	return i.decodeVector(c, n+2, p)
}

// decodeEVEX reads an instruction with the prefix 62 (Intel SDM vol. 2 §2.7.1); n is the offset after that byte.
func (i *Inst) decodeEVEX(c *[lookahead]byte, n int) (int, bool) {
	if i.REX != 0 || i.Prefixes&noVectorPrefix != 0 {
		return n, false
	}
	p0, p1, p2 := c[n], c[n+1], c[n+2]
	if p0&7 > Map6 || p0&0x08 != 0 || p1&0x04 == 0 {
		return n + 2, false // APX or reserved
	}
	i.REX = REX(^p0>>5) | REX(p1>>7)*RexW
	i.V = ^p1>>3&15 | ^p2<<1&16
	n, ok := i.decodeVector(c, n+3, vectorPrefix{EVEX, p0 & 7, p1 & 3})
	i.Reg |= ^p0 & 0x10 // R'
	if i.Mod == 3 {
		i.RM |= uint8(i.REX&RexX) << 3
	} else if i.vectorIndex() {
		i.Index |= int8(i.V & 16) // V'
		i.V &= 15
	}
	return n, ok
}

// decodeVector reads opcode and operands at offset n, behind the whole prefix.
func (i *Inst) decodeVector(c *[lookahead]byte, n int, p vectorPrefix) (int, bool) {
	i.Encoding, i.Map, i.Opcode, i.OpcodeOff = p.encoding, p.opmap, c[n], uint8(n)
	s, ok := p.shape(i.Opcode)
	if !ok {
		return n + 1, false
	}
	switch p.pp {
	case pp66:
		i.Prefixes |= Opsize66
	case ppF3:
		i.Prefixes |= RepF3
	case ppF2:
		i.Prefixes |= RepneF2
	}
	n, ok = i.operands(c, n+1, s, i.REX)
	if (i.RM != 4 || i.Mod == 3) && i.vectorIndex() {
		ok = false // there is no SIB byte
	}
	return n, ok
}

// shape returns the shape of opcode behind p. It reports false if there is no such instruction.
func (p vectorPrefix) shape(opcode uint8) (shape, bool) {
	var valid *opcodePrefixes
	switch p.encoding {
	case VEX:
		valid = &vexPrefixes[p.opmap]
	case EVEX:
		valid = &evexPrefixes[p.opmap]
	default:
		valid = &xopPrefixes[p.opmap-MapXOP8]
	}
	if !valid.allows(opcode, p.pp) {
		return 0, false
	}
	switch p.opmap {
	case Map0F:
		if p.encoding == VEX && opcode == 0x77 { // vzeroupper, vzeroall
			return tailNone, true
		}
		s := shapeModRM
		if shapes0F[opcode]&shapeTail == tailByte {
			s |= tailByte
		}
		if p.encoding == VEX { // EVEX has more forms of the same opcodes
			s |= shapes0F[opcode] & shapeGroup
		}
		return s, true
	case Map0F38:
		if p.encoding == VEX {
			return shapeModRM | shapeGroup, true
		}
	case Map0F3A, MapXOP8:
		return shapeModRM | tailByte, true
	case MapXOP9:
		return shapeModRM | shapeGroup, true
	case MapXOPA:
		return shapeModRM | shapeGroup | tail32, true
	}
	return shapeModRM, true
}

// vectorIndex reports whether the index register of the memory operand is a vector register (VSIB, Intel SDM vol. 2 §2.3.12).
func (i *Inst) vectorIndex() bool {
	if i.Map != Map0F38 || i.Encoding == Legacy {
		return false
	}
	switch i.Opcode {
	case 0x90, 0x91, 0x92, 0x93:
		return true
	case 0xA0, 0xA1, 0xA2, 0xA3, 0xC6, 0xC7:
		return i.Encoding == EVEX
	}
	return false
}
