package amd64

// usePrimary covers the one-byte map.
func (i *Inst) usePrimary() use {
	switch op := i.Opcode; op >> 4 {
	case 0, 1, 2, 3:
		return useArithmetic(op)
	case 5: // push, pop
		if op < 0x58 {
			return use{readOp | whole, maskRSP, maskRSP}
		}
		return use{writeOp, maskRSP, maskRSP}
	case 6:
		return use6x(op)
	case 8:
		return i.use8x()
	case 9:
		return i.use9x()
	case 0xA:
		return useAx(op)
	case 0xB: // mov
		if op < 0xB8 {
			return use{roles: writeOp | byteReg}
		}
		return use{roles: writeOp}
	case 0xC:
		return i.useCx()
	case 0xD:
		return i.useDx()
	case 0xE:
		return useEx(op)
	case 0xF:
		return i.useFx()
	}
	return use{}
}

// useArithmetic covers the eight operations below 0x40: add, or, adc, sbb, and, sub, xor and cmp, which writes nothing.
func useArithmetic(op uint8) use {
	u := [6]use{
		{roles: changeRM | readReg | byteBoth},
		{roles: changeRM | readReg},
		{roles: changeReg | readRM | byteBoth},
		{roles: changeReg | readRM},
		implied(maskRAX),
		implied(maskRAX),
	}[op&7]
	if op >= 0x38 {
		u.roles &^= writeReg | writeRM
		u.written = 0
	}
	return u
}

func use6x(op uint8) use {
	switch op {
	case 0x63, 0x69, 0x6B: // movsxd, imul
		return use{roles: writeReg | readRM}
	case 0x68, 0x6A: // push
		return implied(maskRSP)
	case 0x6C, 0x6D: // ins
		return use{read: maskRDI | maskRDX, written: maskRDI}
	case 0x6E, 0x6F: // outs
		return use{read: maskRSI | maskRDX, written: maskRSI}
	}
	return use{}
}

func (i *Inst) use8x() use {
	switch i.Opcode {
	case 0x80: // add … cmp
		if i.group() == 7 {
			return use{roles: readRM | byteRM}
		}
		return use{roles: changeRM | byteRM}
	case 0x81, 0x83:
		if i.group() == 7 {
			return use{roles: readRM}
		}
		return use{roles: changeRM}
	case 0x84: // test
		return use{roles: readRM | readReg | byteBoth}
	case 0x85:
		return use{roles: readRM | readReg}
	case 0x86: // xchg
		return use{roles: changeRM | changeReg | byteBoth}
	case 0x87:
		return use{roles: changeRM | changeReg}
	case 0x88: // mov
		return use{roles: writeRM | readReg | byteBoth}
	case 0x89:
		return use{roles: writeRM | readReg}
	case 0x8A:
		return use{roles: writeReg | readRM | byteBoth}
	case 0x8B:
		return use{roles: writeReg | readRM}
	case 0x8C: // mov from a segment register
		return use{roles: writeRM}
	case 0x8D: // lea
		return use{roles: writeReg}
	case 0x8E: // mov to a segment register
		return use{roles: readRM}
	case 0x8F: // pop
		return use{writeRM, maskRSP, maskRSP}
	}
	return use{}
}

func (i *Inst) use9x() use {
	switch i.Opcode {
	case 0x90:
		if i.REX&RexB == 0 { // nop, pause
			return use{}
		}
		return use{changeOp, maskRAX, maskRAX}
	case 0x98: // cbw, cwde, cdqe
		return implied(maskRAX)
	case 0x99: // cwd, cdq, cqo
		if i.word() {
			return use{read: maskRAX | maskRDX, written: maskRDX}
		}
		return use{read: maskRAX, written: maskRDX}
	case 0x9B: // fwait
		return use{}
	case 0x9C, 0x9D: // pushf, popf
		return implied(maskRSP)
	case 0x9E: // sahf
		return use{read: maskRAX}
	case 0x9F: // lahf
		return implied(maskRAX)
	}
	return use{changeOp, maskRAX, maskRAX} // xchg
}

func useAx(op uint8) use {
	switch op {
	case 0xA0: // mov
		return implied(maskRAX)
	case 0xA1:
		return use{read: maskRAX, written: maskRAX} // may be 16 bits
	case 0xA2, 0xA3, 0xA8, 0xA9: // mov, test
		return use{read: maskRAX}
	case 0xA4, 0xA5, 0xA6, 0xA7: // movs, cmps
		return implied(maskRSI | maskRDI)
	case 0xAA, 0xAB, 0xAE, 0xAF: // stos, scas
		return use{read: maskRAX | maskRDI, written: maskRDI}
	case 0xAC, 0xAD: // lods, which may be 8 or 16 bits
		return implied(maskRAX | maskRSI)
	}
	return use{}
}

func (i *Inst) useCx() use {
	switch i.Opcode {
	case 0xC0: // shifts
		return use{roles: changeRM | byteRM}
	case 0xC1:
		return use{roles: changeRM}
	case 0xC6: // mov, xabort
		if i.group() == 7 {
			return implied(maskRAX)
		}
		return use{roles: writeRM | byteRM}
	case 0xC7: // mov, xbegin
		if i.group() == 7 {
			return implied(maskRAX)
		}
		return use{roles: writeRM}
	case 0xC2, 0xC3, 0xCA, 0xCB, 0xCF: // ret, iret
		return implied(maskRSP)
	case 0xC8, 0xC9: // enter, leave
		return implied(maskRSP | maskRBP)
	case 0xCD: // int
		return use{read: maskAll, written: maskInt}
	}
	return use{}
}

func (i *Inst) useDx() use {
	switch i.Opcode {
	case 0xD0: // shifts
		return use{roles: changeRM | byteRM}
	case 0xD1:
		return use{roles: changeRM}
	case 0xD2:
		return use{changeRM | byteRM, maskRCX, 0}
	case 0xD3:
		return use{changeRM, maskRCX, 0}
	case 0xD7: // xlat
		return use{read: maskRAX | maskRBX, written: maskRAX}
	case 0xDF: // fnstsw ax
		if i.Mod == 3 && i.group() == 4 {
			return implied(maskRAX)
		}
	}
	return use{}
}

func useEx(op uint8) use {
	switch op {
	case 0xE0, 0xE1, 0xE2: // loop
		return implied(maskRCX)
	case 0xE3: // jrcxz
		return use{read: maskRCX}
	case 0xE4, 0xE5: // in, which may be 8 or 16 bits
		return implied(maskRAX)
	case 0xE6, 0xE7: // out
		return use{read: maskRAX}
	case 0xE8: // call
		return implied(maskRSP)
	case 0xEC, 0xED: // in
		return use{read: maskRAX | maskRDX, written: maskRAX}
	case 0xEE, 0xEF: // out
		return use{read: maskRAX | maskRDX}
	}
	return use{}
}

func (i *Inst) useFx() use {
	switch i.Opcode {
	case 0xF6:
		switch i.group() {
		case 0, 1: // test
			return use{roles: readRM | byteRM}
		case 2, 3: // not, neg
			return use{roles: changeRM | byteRM}
		}
		return use{readRM | byteRM, maskRAX, maskRAX} // mul, div: ax
	case 0xF7:
		switch i.group() {
		case 0, 1:
			return use{roles: readRM}
		case 2, 3:
			return use{roles: changeRM}
		case 4, 5: // mul; 16 bits keep the rest of rdx
			if i.word() {
				return use{readRM, maskRAX | maskRDX, maskRAX | maskRDX}
			}
			return use{readRM, maskRAX, maskRAX | maskRDX}
		}
		return use{readRM, maskRAX | maskRDX, maskRAX | maskRDX}
	case 0xFE: // inc, dec
		return use{roles: changeRM | byteRM}
	case 0xFF:
		switch i.group() {
		case 0, 1:
			return use{roles: changeRM}
		case 4: // jmp
			return use{roles: readRM}
		case 5: // far jmp
			return use{}
		}
		return use{readRM, maskRSP, maskRSP} // call, push
	}
	return use{}
}
