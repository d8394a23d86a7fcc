package lint

import "github.com/callreel/callreel/isa/amd64"

// address returns the address of the memory operand.
func (e onAMD64) address() value {
	in := e.in
	if in.Prefixes&(amd64.SegFS|amd64.SegGS|amd64.Addr67) != 0 || in.Base == amd64.RIP {
		return value{}
	}
	v := value{kind: constant}
	if in.Base != amd64.NoReg {
		v = e.s.regs[in.Base]
	}
	v = v.add(int64(in.Disp))
	if in.Index == amd64.NoReg {
		return v
	}
	index := e.s.regs[in.Index&15]
	if index.kind == constant {
		return v.add(index.off * int64(in.Scale))
	}
	if in.Scale == 1 && v.kind == constant {
		return index.add(v.off)
	}
	return value{may: v.maybe() | index.maybe()}
}

// load reads n bytes through the memory operand.
func (e onAMD64) load(n int64) value { return e.loadFrom(e.address(), n) }

// loadFrom reads n bytes.
func (e onAMD64) loadFrom(at value, n int64) value { return e.effects.loadFrom(at, n, e.elsewhere()) }

// elsewhere says whether an instruction whose address is only known to lead to the own frame reads something else than where
// registers are saved: what is not known to be a saved register's place and goes to a register that calls do not keep, or is
// an element of an array, is the function's data.
func (e onAMD64) elsewhere() bool {
	in := e.in
	if in.Encoding != amd64.Legacy || in.Map != amd64.MapPrimary || in.Opcode != 0x8B || !in.HasMem || in.Base == int8(amd64.RSP) || in.Base == int8(amd64.RBP) {
		return false
	}
	return in.Index != amd64.NoReg && in.Scale > 1 || e.p.calleeSaved>>(in.Reg&15)&1 == 0 && amd64.Reg(in.Reg&15) != rsp
}

// generic covers all instructions by what they read and write.
func (e onAMD64) generic() {
	in := e.in
	read, written := in.GPRRead(), in.GPRWritten()
	var from may
	for r := range e.s.regs {
		if read>>r&1 != 0 {
			from |= e.s.regs[r].maybe()
		}
	}
	if in.HasMem && e.accesses() {
		at := e.address()
		if writes, size := writesMemory(in); writes {
			if at.framed() {
				e.touch(placeOf(at), size)
				e.s.spoil(placeOf(at), size, top) // sizes err towards more
			}
			e.escapeRead(read)
		}
		from |= e.loadFrom(at, 8).maybe() | mayStack
	}
	if written == 0 && !compares(in) {
		e.escapeRead(read) // into a vector register
	}
	delta, known := in.StackDelta()
	for r := range e.s.regs {
		switch {
		case written>>r&1 == 0:
		case amd64.Reg(r) == rsp:
			if e.s.regs[r] = top; known {
				e.s.regs[r] = e.s.regs[r].add(int64(delta))
			}
		case halfWidth(in):
			e.s.regs[r] = value{}
		default:
			e.s.regs[r] = value{may: from}
		}
	}
}

// escapeRead notes that registers went where they cannot be followed.
func (e onAMD64) escapeRead(read uint16) {
	if e.in.Base >= 0 && e.in.Base < amd64.RIP {
		read &^= 1 << e.in.Base
	}
	for r := range e.s.regs {
		if read>>r&1 != 0 {
			e.escape(e.s.regs[r])
		}
	}
}

// accesses says whether the memory operand is accessed: lea and nop only have one.
func (e onAMD64) accesses() bool {
	in := e.in
	if in.Encoding != amd64.Legacy {
		return true
	}
	switch in.Map {
	case amd64.MapPrimary:
		return in.Opcode != 0x8D
	case amd64.Map0F:
		return !(in.Opcode == 0x0D || in.Opcode >= 0x18 && in.Opcode <= 0x1F)
	}
	return true
}

// halfWidth says whether what the instruction writes to registers has 32 bits: it is no address in a stack then, and
// not what a register of 64 bits held.
func halfWidth(in *amd64.Inst) bool {
	if in.REX&amd64.RexW != 0 || in.Prefixes&amd64.Opsize66 != 0 && in.Encoding == amd64.Legacy {
		return false
	}
	switch op := in.Opcode; {
	case in.Encoding == amd64.VEX:
		return true
	case in.Encoding != amd64.Legacy:
		return false
	case in.Map == amd64.MapPrimary:
		switch {
		case op < 0x40, op >= 0x80 && op < 0x90:
			return op&1 != 0 && op != 0x8F
		case op == 0x63, op == 0x69, op == 0x6B, op == 0x98, op == 0x99, op >= 0xB8 && op < 0xC0:
			return true
		case op == 0xC1, op == 0xC7, op == 0xD1, op == 0xD3, op == 0xF7, op == 0xFF, op > 0x90 && op < 0x98:
			return true
		}
	case in.Map == amd64.Map0F:
		switch {
		case op>>4 == 4, op == 0xA2, op == 0x31, op == 0xAF, op >= 0xB6 && op <= 0xBF, op >= 0xC8 && op <= 0xCF:
			return true
		case op == 0xA4, op == 0xA5, op == 0xAB, op == 0xAC, op == 0xAD, op == 0xB3, op == 0xB1, op == 0xC1:
			return true
		case op == 0x2C, op == 0x2D, op == 0x50, op == 0x7E, op == 0xC5, op == 0xD7:
			return true
		}
	}
	return false
}

// compares says whether the instruction only sets flags, or does nothing.
func compares(in *amd64.Inst) bool {
	if in.Encoding != amd64.Legacy {
		return false
	}
	switch op := in.Opcode; in.Map {
	case amd64.MapPrimary:
		switch {
		case op >= 0x38 && op <= 0x3D, op == 0x84, op == 0x85, op == 0xA8, op == 0xA9:
			return true
		case op == 0x80, op == 0x81, op == 0x83:
			return in.Reg&7 == 7
		case op == 0xF6, op == 0xF7:
			return in.Reg&7 < 2
		}
		return op == 0x90
	case amd64.Map0F:
		return op == 0xA3 || op == 0xBA || op == 0x0D || op >= 0x18 && op <= 0x1F
	}
	return false
}

// writesMemory says whether the memory operand may be written, and how many bytes at most. It errs towards more.
func writesMemory(in *amd64.Inst) (bool, int64) {
	switch in.Encoding {
	case amd64.VEX:
		return vectorStore(in), vectorSize(in, 32)
	case amd64.EVEX:
		return vectorStore(in) || in.Map != amd64.Map0F, 64
	case amd64.XOP:
		return true, 16
	}
	switch in.Map {
	case amd64.MapPrimary:
		return primaryStore(in)
	case amd64.Map0F:
		return store0F(in)
	case amd64.Map0F38: // movbe
		return in.Opcode == 0xF1 || in.Opcode >= 0xF5, 64
	case amd64.Map0F3A: // pextr
		return in.Opcode >= 0x14 && in.Opcode <= 0x17, 8
	}
	return false, 0
}

// operandSize returns the bytes of the memory operand of an instruction whose opcode's low bit tells bytes from words.
func operandSize(in *amd64.Inst) int64 {
	switch {
	case in.Opcode&1 == 0:
		return 1
	case in.REX&amd64.RexW != 0:
		return 8
	case in.Prefixes&amd64.Opsize66 != 0:
		return 2
	}
	return 4
}

// primaryStore covers the one-byte map.
func primaryStore(in *amd64.Inst) (bool, int64) {
	op, group := in.Opcode, in.Reg&7
	switch {
	case op < 0x38:
		return op&7 < 2, operandSize(in)
	case op >= 0x80 && op <= 0x83:
		return group != 7, operandSize(in)
	case op >= 0x86 && op <= 0x89, op == 0xC0, op == 0xC1, op == 0xC6, op == 0xC7, op >= 0xD0 && op <= 0xD3:
		return true, operandSize(in)
	case op == 0x8C, op == 0x8F:
		return true, 8
	case op >= 0xD8 && op <= 0xDF:
		return uint64(floatStores)>>(8*(op-0xD8)+group)&1 != 0, floatSize(op, group)
	case op == 0xF6 || op == 0xF7:
		return group == 2 || group == 3, operandSize(in)
	case op == 0xFE || op == 0xFF:
		return group < 2, operandSize(in)
	}
	return false, 0
}

// store0F covers the map 0F without VEX.
func store0F(in *amd64.Inst) (bool, int64) {
	switch op := in.Opcode; {
	case op == 0xAE && in.Reg&7 == 3: // stmxcsr
		return true, 4
	case op == 0xAE:
		return in.Reg&7 == 0 || in.Reg&7 == 4 || in.Reg&7 == 6, 4096
	case vectorStore(in):
		return true, vectorSize(in, 16)
	case op >= 0x90 && op < 0xA0: // setcc
		return true, 1
	case op == 0xA4, op == 0xA5, op == 0xAB, op == 0xAC, op == 0xAD, op == 0xB0, op == 0xB1, op == 0xB3,
		op == 0xBB, op == 0xC0, op == 0xC1, op == 0xC3:
		return true, 8
	case op == 0xBA:
		return in.Reg&7 > 4, 8
	case op == 0xC7:
		return true, 4096 // cmpxchg16b; xsavec
	case op == 0x00 || op == 0x01:
		return true, 16
	}
	return false, 0
}

// floatStores has a bit for each x87 instruction that writes to memory: 8 for each opcode from 0xD8 on, by the reg field
// (Intel SDM vol. 2 appendix A.5).
const floatStores = 0b11001100<<8 | 0b10001110<<24 | 0b11001110<<40 | 0b11001110<<56

// floatSize returns the bytes that an x87 instruction stores (Intel SDM vol. 2 appendix A.5), too many for loads.
func floatSize(op, group uint8) int64 {
	switch {
	case op == 0xD9 && group == 6: // fnstenv
		return 28
	case op == 0xDD && group == 6: // fnsave
		return 108
	case group == 7 && op == 0xDB, group == 6: // fstp, fbstp
		return 10
	case op == 0xDD && group < 4, group == 7 && op == 0xDF:
		return 8
	case op == 0xDF, group == 7:
		return 2
	}
	return 4
}

// vectorSize returns the bytes of a vector store, given those of a whole vector.
func vectorSize(in *amd64.Inst, whole int64) int64 {
	if in.Map != amd64.Map0F {
		return whole
	}
	scalar := in.Prefixes & (amd64.RepF3 | amd64.RepneF2)
	switch op := in.Opcode; {
	case op == 0x11 && scalar == amd64.RepF3:
		return 4
	case op == 0x11 && scalar != 0, op == 0x13, op == 0x17, op == 0xD6, op == 0x7E:
		return 8
	}
	return whole
}

// vectorStore says whether an instruction of the map 0F, or of VEX, writes a vector to memory.
func vectorStore(in *amd64.Inst) bool {
	switch op := in.Opcode; in.Map {
	case amd64.Map0F:
		switch op {
		case 0x11, 0x13, 0x17, 0x29, 0x2B, 0x7E, 0x7F, 0xD6, 0xE7, 0x91:
			return true
		}
	case amd64.Map0F38:
		return op == 0x2E || op == 0x2F || op == 0x8E
	case amd64.Map0F3A:
		return op >= 0x14 && op <= 0x17 || op == 0x19 || op == 0x1D || op == 0x39
	}
	return false
}
