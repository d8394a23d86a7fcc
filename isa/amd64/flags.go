package amd64

// FlagsRead reports whether the instruction reads any of CF, PF, AF, ZF, SF and OF. It errs towards true: what hands
// all flags to the kernel or to a signal handler (syscall, int, int3, ud2) counts as reading them.
func (i *Inst) FlagsRead() bool {
	switch i.Kind {
	case CondJump, Syscall, Breakpoint, Undefined:
		return true
	case ShortLoop:
		return i.Opcode <= 0xE1 // loopne, loope
	}
	if i.Encoding != Legacy {
		return false
	}
	switch i.Map {
	case MapPrimary:
		return i.flagsReadPrimary()
	case Map0F:
		switch i.Opcode >> 4 {
		case 4, 9: // cmovcc, setcc
			return true
		}
	case Map0F38: // adcx, adox
		return i.Opcode == 0xF6 && (i.mandatoryPrefix() == pp66 || i.mandatoryPrefix() == ppF3)
	}
	return false
}

func (i *Inst) flagsReadPrimary() bool {
	switch op := i.Opcode; {
	case op < 0x40:
		return op>>3 == 2 || op>>3 == 3 // adc, sbb
	case op == 0x80 || op == 0x81 || op == 0x83:
		return i.group() == 2 || i.group() == 3
	case op == 0xC0 || op == 0xC1 || op >= 0xD0 && op <= 0xD3: // rcl, rcr
		return i.group() == 2 || i.group() == 3
	case op == 0xDA || op == 0xDB: // fcmovcc
		return i.Mod == 3 && i.group() < 4
	case op == 0x9C || op == 0x9F || op == 0xF5: // pushf, lahf, cmc
		return true
	}
	return false
}

// FlagsWritten reports whether the instruction certainly overwrites all of CF, PF, AF, ZF, SF and OF, or leaves them
// undefined, and reads none of them: whatever they were before is lost. It errs towards false: inc keeps CF, and a
// shift by cl or by zero may keep them all.
func (i *Inst) FlagsWritten() bool {
	switch i.Encoding {
	case Legacy:
		switch i.Map {
		case MapPrimary:
			return i.flagsWrittenPrimary()
		case Map0F:
			return i.flagsWritten0F()
		case Map0F38:
			return i.Opcode == 0x17 // ptest
		case Map0F3A:
			return i.Opcode >= 0x60 && i.Opcode <= 0x63 // pcmpestrm, pcmpestri, pcmpistrm, pcmpistri
		}
	case VEX:
		return i.flagsWrittenVEX()
	case EVEX: // comis, ucomis
		return (i.Map == Map0F || i.Map == Map5) && (i.Opcode == 0x2E || i.Opcode == 0x2F)
	case XOP: // the trailing-bit instructions and bextr
		return i.Map == MapXOP9 && i.Opcode <= 0x02 || i.Map == MapXOPA && i.Opcode == 0x10
	}
	return false
}

func (i *Inst) flagsWrittenPrimary() bool {
	switch op := i.Opcode; {
	case op < 0x40: // add, or, and, sub, xor, cmp; not adc, sbb
		return op&7 < 6 && op>>3 != 2 && op>>3 != 3
	case op == 0x80 || op == 0x81 || op == 0x83:
		return i.group() != 2 && i.group() != 3
	case op == 0x84 || op == 0x85 || op == 0xA8 || op == 0xA9: // test
		return true
	case op == 0x69 || op == 0x6B: // imul
		return true
	case op == 0x9D: // popf
		return true
	case op == 0xA6 || op == 0xA7 || op == 0xAE || op == 0xAF: // cmps, scas: with a count of zero nothing happens
		return i.Prefixes&(RepF3|RepneF2) == 0
	case op == 0xC0 || op == 0xC1: // shl, shr, sar
		return i.group() >= 4 && i.shifts()
	case op == 0xD0 || op == 0xD1:
		return i.group() >= 4
	case op == 0xF6 || op == 0xF7: // all but not
		return i.group() != 2
	}
	return false
}

func (i *Inst) flagsWritten0F() bool {
	switch i.Opcode {
	case 0x2E, 0x2F, // comis, ucomis
		0xAF,       // imul
		0xB0, 0xB1, // cmpxchg
		0xB8,       // popcnt
		0xBC, 0xBD, // bsf, bsr, tzcnt, lzcnt
		0xC0, 0xC1: // xadd
		return true
	case 0xA4, 0xAC: // shld, shrd
		return i.shifts()
	case 0xC7: // rdrand, rdseed; with F3 senduipi, rdpid
		return i.Mod == 3 && i.mandatoryPrefix() != ppF3
	}
	return false
}

func (i *Inst) flagsWrittenVEX() bool {
	switch i.Map {
	case Map0F: // comis, ucomis, kortest, ktest
		return i.Opcode == 0x2E || i.Opcode == 0x2F || i.Opcode == 0x98 || i.Opcode == 0x99
	case Map0F38:
		switch op := i.Opcode; op {
		case 0x0E, 0x0F, 0x17: // vtestps, vtestpd, vptest
			return true
		case 0xF2, 0xF3: // andn; blsr, blsmsk, blsi
			return true
		case 0xF5, 0xF7: // bzhi, bextr, but not pdep, pext, sarx, shlx, shrx
			return i.mandatoryPrefix() == 0
		default:
			return op>>4 == 0xE // cmpccxadd
		}
	case Map0F3A: // vpcmpestrm …
		return i.Opcode >= 0x60 && i.Opcode <= 0x63
	}
	return false
}

// shifts reports whether an immediate count, as the processor masks it, is not zero.
func (i *Inst) shifts() bool {
	if i.wide() {
		return i.Imm&63 != 0
	}
	return i.Imm&31 != 0
}
