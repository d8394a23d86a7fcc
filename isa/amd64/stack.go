package amd64

// StackDelta returns by how many bytes the instruction moves RSP, and whether that is known. It is known and zero
// where RSP is not written, and for a near call, as seen after the callee's return. It is not known where RSP is
// loaded, computed or aligned (leave, enter, mov, pop rsp, and rsp …) and for far branches.
func (i *Inst) StackDelta() (delta int, known bool) {
	switch i.Kind {
	case Call, IndirectCall:
		return 0, true
	case Return:
		return 8 + int(i.Imm), true
	case FarBranch:
		return 0, false
	}
	if i.Encoding == Legacy {
		switch i.Map {
		case MapPrimary:
			if delta, known = i.stackDeltaPrimary(); known {
				return delta, true
			}
		case Map0F:
			switch i.Opcode {
			case 0xA0, 0xA8: // push fs, gs
				return -i.pushSize(), true
			case 0xA1, 0xA9: // pop fs, gs
				return i.pushSize(), true
			}
		}
	}
	return 0, i.GPRWritten()&RSP.Mask() == 0
}

func (i *Inst) stackDeltaPrimary() (delta int, known bool) {
	switch op := i.Opcode; op {
	case 0x68, 0x6A, 0x9C: // push, pushf
		return -i.pushSize(), true
	case 0x9D: // popf
		return i.pushSize(), true
	case 0x8F: // pop
		return i.pushSize(), i.Mod != 3 || i.RM != uint8(RSP)
	case 0xFF:
		switch i.group() {
		case 6: // push
			return -i.pushSize(), true
		case 0: // inc
			return 1, i.writesWholeRSP()
		case 1: // dec
			return -1, i.writesWholeRSP()
		}
	case 0x81, 0x83:
		switch i.group() {
		case 0: // add
			return int(i.Imm), i.writesWholeRSP()
		case 5: // sub
			return -int(i.Imm), i.writesWholeRSP()
		}
	case 0x8D: // lea
		own := i.Base == int8(RSP) && i.Index == NoReg && i.Prefixes&Addr67 == 0
		return int(i.Disp), own && i.Reg == uint8(RSP) && i.wide()
	default:
		switch op >> 3 {
		case 0x50 >> 3: // push
			return -i.pushSize(), true
		case 0x58 >> 3: // pop
			return i.pushSize(), i.Reg != uint8(RSP)
		}
	}
	return 0, false
}

// pushSize returns the size of a push or pop in bytes: 64 bits unless the prefix 66 makes it 16.
func (i *Inst) pushSize() int {
	if i.word() {
		return 2
	}
	return 8
}

// writesWholeRSP reports whether the operand of ModRM.rm is RSP in 64 bits.
func (i *Inst) writesWholeRSP() bool {
	return i.Mod == 3 && i.RM == uint8(RSP) && i.wide()
}
