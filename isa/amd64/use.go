package amd64

// use says which general registers an instruction reads and writes: those that its operands name, by their role, and
// those that the opcode implies, as masks.
type use struct {
	roles         roles
	read, written uint16
}

// roles are the places that name a general register, and what is done to it there.
type roles uint16

const (
	readReg  roles = 1 << iota // ModRM.reg
	writeReg                   //
	readRM                     // ModRM.rm, if it is not memory
	writeRM                    //
	readOp                     // the low bits of the opcode
	writeOp                    //
	readV                      // VEX.vvvv
	writeV                     //
	byteReg                    // the operand in ModRM.reg or the opcode has 8 bits
	byteRM                     // the operand in ModRM.rm has 8 bits
	whole                      // 66 does not make the result 16 bits wide

	changeReg = readReg | writeReg
	changeRM  = readRM | writeRM
	changeOp  = readOp | writeOp
	byteBoth  = byteReg | byteRM
)

const (
	maskRAX uint16 = 1 << RAX
	maskRCX uint16 = 1 << RCX
	maskRDX uint16 = 1 << RDX
	maskRBX uint16 = 1 << RBX
	maskRSP uint16 = 1 << RSP
	maskRBP uint16 = 1 << RBP
	maskRSI uint16 = 1 << RSI
	maskRDI uint16 = 1 << RDI
	maskR11 uint16 = 1 << R11

	// A kernel entered by int may clobber these, as Linux before 4.16 did with r8 to r11.
	maskInt = maskRAX | 1<<R8 | 1<<R9 | 1<<R10 | maskR11

	maskAll uint16 = 0xFFFF
)

// implied is the use of registers that are both read and written.
func implied(mask uint16) use { return use{read: mask, written: mask} }

// GPRWritten returns the general registers that the instruction itself may write, as a mask of [Reg.Mask] bits. It
// errs towards too many: a write that is conditional or of a part of the register is in the mask. What a callee does is not.
func (i *Inst) GPRWritten() uint16 {
	u := i.use()
	m := u.written
	if u.roles&writeReg != 0 {
		m |= 1 << i.regOperand(u.roles)
	}
	if u.roles&writeOp != 0 {
		m |= 1 << i.regOperand(u.roles)
	}
	if u.roles&writeRM != 0 && i.Mod == 3 {
		m |= 1 << i.rmOperand(u.roles)
	}
	if u.roles&writeV != 0 {
		m |= 1 << (i.V & 15)
	}
	return m
}

// GPRRead returns the general registers on whose old value the instruction depends, those of addresses included, as
// a mask of [Reg.Mask] bits. It errs towards too many. A register that is written only in part (8 and 16 bits) or
// only sometimes (cmov, rep movs) counts as read too, so that "live before = live after without written, with read" holds.
func (i *Inst) GPRRead() uint16 {
	u := i.use()
	m := u.read
	partial := u.roles&whole == 0 && i.word()
	if u.roles&(readReg|readOp) != 0 || u.roles&(writeReg|writeOp) != 0 && (partial || u.roles&byteReg != 0) {
		m |= 1 << i.regOperand(u.roles)
	}
	if i.Mod == 3 && (u.roles&readRM != 0 || u.roles&writeRM != 0 && (partial || u.roles&byteRM != 0)) {
		m |= 1 << i.rmOperand(u.roles)
	}
	if u.roles&readV != 0 {
		m |= 1 << (i.V & 15)
	}
	if i.Base >= 0 && i.Base < RIP {
		m |= 1 << i.Base
	}
	if i.Index >= 0 && !i.vectorIndex() {
		m |= 1 << i.Index
	}
	return m
}

// regOperand returns the general register of ModRM.reg or the opcode.
func (i *Inst) regOperand(r roles) uint8 { return i.byteRegister(i.Reg&15, r&byteReg != 0) }

// rmOperand returns the general register of ModRM.rm.
func (i *Inst) rmOperand(r roles) uint8 { return i.byteRegister(i.RM&15, r&byteRM != 0) }

// byteRegister maps ah, ch, dh and bh to the registers that hold them; with a REX prefix there are none.
func (i *Inst) byteRegister(n uint8, isByte bool) uint8 {
	if isByte && i.REX&RexPresent == 0 && n >= 4 && n < 8 {
		return n - 4
	}
	return n
}

// use looks up what the instruction does to registers.
func (i *Inst) use() use {
	switch i.Encoding {
	case VEX:
		return i.useVEX()
	case EVEX:
		return i.useEVEX()
	case XOP:
		return i.useXOP()
	}
	switch i.Map {
	case MapPrimary:
		u := i.usePrimary()
		if i.Prefixes&(RepF3|RepneF2) != 0 && i.stringOp() {
			// With a count of zero nothing is written.
			u.read |= maskRCX | u.written
			u.written |= maskRCX
		}
		return u
	case Map0F:
		return i.use0F()
	case Map0F38:
		return i.use0F38()
	case Map0F3A:
		return i.use0F3A()
	}
	return use{}
}

// stringOp reports whether this is ins, outs, movs, cmps, stos, lods or scas.
func (i *Inst) stringOp() bool {
	if i.Encoding != Legacy || i.Map != MapPrimary {
		return false
	}
	op := i.Opcode
	return op >= 0x6C && op <= 0x6F || op >= 0xA4 && op <= 0xA7 || op >= 0xAA && op <= 0xAF
}
