package amd64

// use0F covers the map 0F.
func (i *Inst) use0F() use {
	switch i.Opcode >> 4 {
	case 0:
		return i.use0F0x()
	case 1, 2, 3:
		return i.use0F1x()
	case 4: // cmov
		return use{roles: changeReg | readRM}
	case 5, 6, 7:
		return i.use0F5x()
	case 9: // setcc
		return use{roles: writeRM | byteRM}
	case 0xA:
		return i.use0FAx()
	case 0xB:
		return i.use0FBx()
	case 0xC:
		return i.use0FCx()
	case 0xD: // pmovmskb
		if i.Opcode == 0xD7 {
			return use{roles: writeReg | whole}
		}
	case 0xF: // maskmovq
		if i.Opcode == 0xF7 {
			return use{read: maskRDI}
		}
	}
	return use{}
}

func (i *Inst) use0F0x() use {
	switch i.Opcode {
	case 0x00: // sldt, str; lldt, ltr, verr, verw
		if i.group() < 2 {
			return use{roles: writeRM}
		}
		return use{roles: readRM}
	case 0x01:
		return i.useSystem()
	case 0x02, 0x03: // lar, lsl, which write if they succeed
		return use{roles: changeReg | readRM}
	case 0x05: // syscall
		return use{read: maskAll, written: maskRAX | maskRCX | maskR11}
	case 0x07: // sysret
		return use{read: maskRCX | maskR11}
	}
	return use{}
}

// useSystem covers 0F 01. Of its register forms only those that user programs execute are told apart.
func (i *Inst) useSystem() use {
	if i.Mod != 3 {
		return use{}
	}
	pp := i.mandatoryPrefix()
	switch g := i.group()<<3 | i.RM&7; {
	case i.group() == 4: // smsw
		return use{roles: writeRM}
	case i.group() == 6: // lmsw
		return use{roles: readRM}
	case g == 0o20 || g == 0o56 && pp == 0: // xgetbv, rdpkru
		return use{read: maskRCX, written: maskRAX | maskRDX}
	case g == 0o71: // rdtscp
		return use{written: maskRAX | maskRDX | maskRCX}
	case g == 0o25 || g == 0o26 || g == 0o70 || i.group() == 5 && pp != 0 || g == 0o50:
		return use{} // xend, xtest, swapgs, the user interrupts, xsusldtrk, serialize
	}
	return use{read: maskAll, written: maskAll &^ maskRSP}
}

func (i *Inst) use0F1x() use {
	wide := i.mandatoryPrefix() >= ppF3
	switch i.Opcode {
	case 0x1A, 0x1B: // bndcl, bndcu, bndcn
		return use{roles: readRM}
	case 0x1E: // rdssp, which is a nop without shadow stacks
		if i.Prefixes&RepF3 != 0 && i.group() == 1 {
			return use{roles: changeRM}
		}
	case 0x20, 0x21: // mov from CRn, DRn
		return use{roles: writeRM | whole}
	case 0x22, 0x23:
		return use{roles: readRM}
	case 0x2A: // cvtsi2ss, cvtsi2sd
		if wide {
			return use{roles: readRM}
		}
	case 0x2C, 0x2D: // cvtss2si, cvtsd2si and the truncating ones
		if wide {
			return use{roles: writeReg | whole}
		}
	case 0x30: // wrmsr
		return use{read: maskRAX | maskRCX | maskRDX}
	case 0x31: // rdtsc
		return use{written: maskRAX | maskRDX}
	case 0x32, 0x33: // rdmsr, rdpmc
		return use{read: maskRCX, written: maskRAX | maskRDX}
	case 0x34, 0x35, 0x37: // sysenter, sysexit, getsec
		return implied(maskAll)
	}
	return use{}
}

func (i *Inst) use0F5x() use {
	switch i.Opcode {
	case 0x50: // movmskps, movmskpd
		return use{roles: writeReg | whole}
	case 0x6E: // movd, movq
		return use{roles: readRM}
	case 0x7E: // with F3 it is between vector registers
		if i.mandatoryPrefix() < ppF3 {
			return use{roles: writeRM | whole}
		}
	case 0x78: // vmread
		if i.mandatoryPrefix() == 0 {
			return use{roles: writeRM | readReg}
		}
	case 0x79: // vmwrite
		if i.mandatoryPrefix() == 0 {
			return use{roles: readRM | readReg}
		}
	}
	return use{}
}

func (i *Inst) use0FAx() use {
	switch i.Opcode {
	case 0xA0, 0xA1, 0xA8, 0xA9: // push, pop
		return implied(maskRSP)
	case 0xA2: // cpuid
		return use{read: maskRAX | maskRCX, written: maskRAX | maskRBX | maskRCX | maskRDX}
	case 0xA3: // bt
		return use{roles: readRM | readReg}
	case 0xA4, 0xAB, 0xAC: // shld, bts, shrd
		return use{roles: changeRM | readReg}
	case 0xA5, 0xAD:
		return use{changeRM | readReg, maskRCX, 0}
	case 0xA6, 0xA7: // VIA PadLock
		return implied(maskRAX | maskRCX | maskRDX | maskRBX | maskRSI | maskRDI)
	case 0xAA: // rsm
		return implied(maskAll)
	case 0xAE:
		return i.useAE()
	case 0xAF: // imul
		return use{roles: changeReg | readRM}
	}
	return use{}
}

// useAE covers 0F AE: fences, the extended state and the bases of FS and GS.
func (i *Inst) useAE() use {
	pp := i.mandatoryPrefix()
	switch {
	case i.Mod != 3: // xsave, xrstor, xsaveopt take their mask from edx:eax
		if i.group() >= 4 && i.group() <= 6 {
			return use{read: maskRAX | maskRDX}
		}
	case pp == ppF3 && i.group() < 2: // rdfsbase, rdgsbase
		return use{roles: writeRM}
	case pp == ppF3: // wrfsbase, wrgsbase, ptwrite, incssp, umonitor
		return use{roles: readRM}
	case pp != 0: // umwait, tpause
		return use{readRM, maskRAX | maskRDX, 0}
	}
	return use{}
}

func (i *Inst) use0FBx() use {
	switch i.Opcode {
	case 0xB0: // cmpxchg
		return use{changeRM | readReg | byteBoth, maskRAX, maskRAX}
	case 0xB1:
		return use{changeRM | readReg, maskRAX, maskRAX}
	case 0xB2, 0xB4, 0xB5: // lss, lfs, lgs
		return use{roles: writeReg}
	case 0xB3, 0xBB: // btr, btc
		return use{roles: changeRM | readReg}
	case 0xB6, 0xBE: // movzx, movsx
		return use{roles: writeReg | readRM | byteRM}
	case 0xB7, 0xB8, 0xBF: // movzx, popcnt, movsx
		return use{roles: writeReg | readRM}
	case 0xBA: // bt, bts, btr, btc
		if i.group() == 4 {
			return use{roles: readRM}
		}
		return use{roles: changeRM}
	case 0xBC, 0xBD: // bsf and bsr keep the register if the source is zero; tzcnt and lzcnt are those on old processors
		return use{roles: changeReg | readRM}
	}
	return use{}
}

func (i *Inst) use0FCx() use {
	switch i.Opcode {
	case 0xC0: // xadd
		return use{roles: changeRM | changeReg | byteBoth}
	case 0xC1:
		return use{roles: changeRM | changeReg}
	case 0xC2, 0xC6:
		return use{}
	case 0xC3: // movnti
		return use{roles: readReg}
	case 0xC4: // pinsrw
		return use{roles: readRM}
	case 0xC5: // pextrw
		return use{roles: writeReg | whole}
	case 0xC7:
		switch {
		case i.Mod == 3 && i.group() == 6 && i.mandatoryPrefix() == ppF3: // senduipi
			return use{roles: readRM}
		case i.Mod == 3: // rdrand, rdseed, rdpid
			return use{roles: writeRM}
		case i.group() == 1: // cmpxchg8b, cmpxchg16b
			return use{read: maskRAX | maskRDX | maskRBX | maskRCX, written: maskRAX | maskRDX}
		}
		return use{read: maskRAX | maskRDX} // xsavec, xsaves, xrstors
	}
	return use{roles: changeOp} // bswap
}

// use0F38 covers the map 0F 38.
func (i *Inst) use0F38() use {
	pp := i.mandatoryPrefix()
	switch i.Opcode {
	case 0x80, 0x81, 0x82: // invept, invvpid, invpcid
		return use{roles: readReg}
	case 0xDC: // loadiwkey
		if pp == ppF3 && i.Mod == 3 {
			return use{read: maskRAX}
		}
	case 0xF0: // movbe, crc32
		if pp == ppF2 {
			return use{roles: changeReg | readRM | byteRM}
		}
		return use{roles: writeReg}
	case 0xF1:
		if pp == ppF2 {
			return use{roles: changeReg | readRM}
		}
		return use{roles: readReg}
	case 0xF6: // wrss; adcx, adox
		if pp == 0 {
			return use{roles: readReg}
		}
		return use{roles: changeReg | readRM}
	case 0xF5, 0xF8, 0xF9, 0xFC: // wruss, movdir64b and enqcmd, movdiri, aadd and its kin
		return use{roles: readReg}
	case 0xFA, 0xFB: // encodekey
		return use{roles: writeReg | readRM}
	}
	return use{}
}

// use0F3A covers the map 0F 3A, in which VEX and EVEX do the same to general registers.
func (i *Inst) use0F3A() use {
	switch i.Opcode {
	case 0x14, 0x15, 0x16, 0x17: // pextrb, pextrw, pextrd, extractps
		return use{roles: writeRM | whole}
	case 0x20, 0x22: // pinsrb, pinsrd
		return use{roles: readRM}
	case 0x60: // pcmpestrm
		return use{read: maskRAX | maskRDX}
	case 0x61: // pcmpestri
		return use{read: maskRAX | maskRDX, written: maskRCX}
	case 0x63: // pcmpistri
		return use{written: maskRCX}
	case 0xF0: // hreset
		return use{read: maskRAX}
	}
	return use{}
}

// useVEX covers VEX: AVX where it touches general registers, the mask registers, and BMI.
func (i *Inst) useVEX() use {
	switch i.Map {
	case Map0F:
		switch i.Opcode {
		case 0x92: // kmov to a mask
			return use{roles: readRM}
		case 0x93: // kmov from a mask
			return use{roles: writeReg | whole}
		case 0x50, 0xD7, 0xF7:
			return i.use0F()
		}
		return i.useTransfer()
	case Map0F38:
		switch op := i.Opcode; op {
		case 0xF3: // blsr, blsmsk, blsi
			return use{roles: writeV | readRM}
		case 0xF2, 0xF5, 0xF7: // andn; bzhi, pdep, pext; bextr, sarx, shlx, shrx
			return use{roles: writeReg | readV | readRM | whole}
		case 0xF6: // mulx
			return use{writeReg | writeV | readRM | whole, maskRDX, 0}
		default:
			if op>>4 == 0xE { // cmpccxadd
				return use{roles: changeReg | readV}
			}
		}
	case Map0F3A:
		if i.Opcode == 0xF0 { // rorx
			return use{roles: writeReg | readRM | whole}
		}
		return i.use0F3A()
	}
	return use{}
}

// useEVEX covers EVEX: AVX-512 where it touches general registers.
func (i *Inst) useEVEX() use {
	switch i.Map {
	case Map0F, Map5:
		return i.useTransfer()
	case Map0F38:
		switch i.Opcode {
		case 0x7A, 0x7B, 0x7C: // vpbroadcast from a general register
			return use{roles: readRM}
		}
	case Map0F3A:
		if i.Opcode <= 0x22 {
			return i.use0F3A()
		}
	}
	return use{}
}

// useTransfer covers the moves and conversions between vector and general registers that VEX and EVEX have in common.
func (i *Inst) useTransfer() use {
	scalar := i.mandatoryPrefix() >= ppF3
	switch i.Opcode {
	case 0x2A, 0x7B: // vcvtsi2sd, vcvtusi2sd
		if scalar {
			return use{roles: readRM}
		}
	case 0x2C, 0x2D, 0x78, 0x79: // vcvtsd2si, vcvtsd2usi
		if scalar {
			return use{roles: writeReg | whole}
		}
	case 0x6E: // vmovd, vmovw
		return use{roles: readRM}
	case 0x7E:
		if !scalar {
			return use{roles: writeRM | whole}
		}
	case 0xC4: // vpinsrw
		return use{roles: readRM}
	case 0xC5: // vpextrw
		return use{roles: writeReg | whole}
	}
	return use{}
}

// useXOP covers XOP: the trailing-bit instructions and lightweight profiling.
func (i *Inst) useXOP() use {
	switch {
	case i.Map == MapXOP9 && i.Opcode <= 0x02:
		return use{roles: writeV | readRM}
	case i.Map == MapXOP9 && i.Opcode == 0x12: // llwpcb, slwpcb
		return use{roles: changeRM}
	case i.Map == MapXOPA && i.Opcode == 0x10: // bextr
		return use{roles: writeReg | readRM}
	case i.Map == MapXOPA: // lwpins, lwpval
		return use{roles: readV | readRM}
	}
	return use{}
}
