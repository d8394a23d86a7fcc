package amd64

// modRMSet is a set of ModRM bytes.
type modRMSet struct {
	mem uint8  // bit n: a memory operand with ModRM.reg = n
	reg uint64 // bit 8n+m: no memory operand, ModRM.reg = n and ModRM.rm = m
}

const (
	allMem uint8  = 0xFF
	allReg uint64 = 1<<64 - 1
)

// validModRM reports whether there is an instruction of this opcode with this ModRM byte.
func (i *Inst) validModRM() bool {
	var set modRMSet
	switch {
	case i.Map == MapPrimary:
		set = primaryModRM(i.Opcode)
	case i.Map == Map0F:
		set = modRM0F(i.Opcode)
	case i.Encoding == VEX:
		set = modRMVEX38(i.Opcode)
	case i.Encoding == XOP:
		set = modRMXOP(i.Map, i.Opcode)
	case i.Map == Map0F38:
		set = modRM0F38(i.Opcode, i.mandatoryPrefix())
	case i.Opcode == 0xF0: // hreset
		set = modRMSet{0, 1}
	default:
		return true
	}
	if i.Mod != 3 {
		return set.mem>>i.group()&1 != 0
	}
	return set.reg>>(i.group()<<3|i.RM)&1 != 0
}

// primaryModRM gives the groups of the one-byte map and the x87 instructions (Intel SDM vol. 2 appendix A.4 and A.5).
func primaryModRM(opcode uint8) modRMSet {
	switch opcode {
	case 0x8C: // mov from a segment register
		return modRMSet{0x3F, 0x0000_FFFF_FFFF_FFFF}
	case 0x8D: // lea
		return modRMSet{allMem, 0}
	case 0x8E: // mov to a segment register, which CS cannot be
		return modRMSet{0x3D, 0x0000_FFFF_FFFF_00FF}
	case 0x8F: // pop
		return modRMSet{0x01, 0xFF}
	case 0xC6, 0xC7: // mov; xabort, xbegin
		return modRMSet{0x01, 0x0100_0000_0000_00FF}
	case 0xD9:
		return modRMSet{0xFD, 0xFFFF_7F33_FF01_FFFF}
	case 0xDA:
		return modRMSet{allMem, 0x0000_0200_FFFF_FFFF}
	case 0xDB:
		return modRMSet{0xAF, 0x00FF_FF1F_FFFF_FFFF}
	case 0xDD:
		return modRMSet{0xDF, 0x0000_FFFF_FFFF_FFFF}
	case 0xDE:
		return modRMSet{allMem, 0xFFFF_FFFF_02FF_FFFF}
	case 0xDF:
		return modRMSet{allMem, 0x00FF_FF01_FFFF_FFFF}
	case 0xFE: // inc, dec
		return modRMSet{0x03, 0xFFFF}
	case 0xFF: // inc, dec, call, far call, jmp, far jmp, push
		return modRMSet{0x7F, 0x00FF_00FF_00FF_FFFF}
	}
	return modRMSet{allMem, allReg}
}

// modRM0F gives the groups of the map 0F, and the instructions that take only memory or only registers, whatever their mandatory prefix.
func modRM0F(opcode uint8) modRMSet {
	switch opcode {
	case 0x00:
		return modRMSet{0x3F, 0x0000_FFFF_FFFF_FFFF}
	case 0x13, 0x17, 0x2B, 0xB2, 0xB4, 0xB5, 0xC3, 0xE7, 0xF0:
		return modRMSet{allMem, 0}
	case 0x20, 0x22: // CR0, 2, 3, 4, 8
		return modRMSet{0, 0x0000_00FF_FFFF_00FF}
	case 0x50, 0xC5, 0xD7, 0xF7:
		return modRMSet{0, allReg}
	case 0x71, 0x72:
		return modRMSet{0, 0x00FF_00FF_00FF_0000}
	case 0x73:
		return modRMSet{0, 0xFFFF_0000_FFFF_0000}
	case 0xA6: // VIA PadLock
		return modRMSet{0, 0x0000_0000_0001_0101}
	case 0xA7:
		return modRMSet{0, 0x0000_0101_0101_0101}
	case 0xBA:
		return modRMSet{0xF0, 0xFFFF_FFFF_0000_0000}
	case 0xC7:
		return modRMSet{0xFA, 0xFFFF_0000_0000_0000}
	}
	return modRMSet{allMem, allReg}
}

// modRM0F38 gives the instructions of the map 0F 38 that take only memory or only registers.
func modRM0F38(opcode, pp uint8) modRMSet {
	switch opcode {
	case 0x2A, 0x80, 0x81, 0x82, 0xF5, 0xF8, 0xF9, 0xFC:
		return modRMSet{allMem, 0}
	case 0xD8:
		return modRMSet{0x0F, 0}
	case 0xDC: // with F3: loadiwkey and aesenc128kl
		return modRMSet{allMem, allReg}
	case 0xDD, 0xDE, 0xDF:
		if pp == ppF3 {
			return modRMSet{allMem, 0}
		}
	case 0xF0, 0xF1:
		if pp != ppF2 {
			return modRMSet{allMem, 0}
		}
	case 0xF6:
		if pp == 0 {
			return modRMSet{allMem, 0}
		}
	case 0xFA, 0xFB:
		return modRMSet{0, allReg}
	}
	return modRMSet{allMem, allReg}
}

// modRMVEX38 gives the groups of the VEX map 0F 38, and the instructions that take only memory.
func modRMVEX38(opcode uint8) modRMSet {
	switch opcode {
	case 0x1A, 0x2A, 0x2C, 0x2D, 0x2E, 0x2F, 0x4B, 0x5A, 0x8C, 0x8E, 0xB0, 0xB1,
		0xE0, 0xE1, 0xE2, 0xE3, 0xE4, 0xE5, 0xE6, 0xE7, 0xE8, 0xE9, 0xEA, 0xEB, 0xEC, 0xED, 0xEE, 0xEF:
		return modRMSet{allMem, 0}
	case 0xF3: // blsr, blsmsk, blsi
		return modRMSet{0x0E, 0x0000_0000_FFFF_FF00}
	}
	return modRMSet{allMem, allReg}
}

// modRMXOP gives the groups of the XOP maps (AMD64 APM vol. 3 appendix A.1.3).
func modRMXOP(opmap, opcode uint8) modRMSet {
	switch {
	case opmap == MapXOP9 && opcode == 0x01: // blcfill … tzmsk
		return modRMSet{0xFE, 0xFFFF_FFFF_FFFF_FF00}
	case opmap == MapXOP9 && opcode == 0x02: // blcmsk, blci
		return modRMSet{0x42, 0x00FF_0000_0000_FF00}
	case opmap == MapXOP9 && opcode == 0x12: // llwpcb, slwpcb
		return modRMSet{0, 0x0000_0000_0000_FFFF}
	case opmap == MapXOPA && opcode == 0x12: // lwpins, lwpval
		return modRMSet{0x03, 0x0000_0000_0000_FFFF}
	}
	return modRMSet{allMem, allReg}
}

// lockable reports whether the instruction may carry the prefix F0: it reads, changes and writes memory (Intel SDM vol. 2, LOCK).
func (i *Inst) lockable() bool {
	if !i.HasMem || i.Encoding != Legacy {
		return false
	}
	switch i.Map {
	case MapPrimary:
		switch op := i.Opcode; {
		case op < 0x38:
			return op&7 <= 1
		case op == 0x80 || op == 0x81 || op == 0x83:
			return i.group() != 7
		case op == 0x86 || op == 0x87:
			return true
		case op == 0xF6 || op == 0xF7:
			return i.group() == 2 || i.group() == 3
		case op == 0xFE || op == 0xFF:
			return i.group() <= 1
		}
	case Map0F:
		switch i.Opcode {
		case 0xAB, 0xB0, 0xB1, 0xB3, 0xBB, 0xC0, 0xC1:
			return true
		case 0xBA:
			return i.group() >= 5
		case 0xC7:
			return i.group() == 1
		}
	}
	return false
}
