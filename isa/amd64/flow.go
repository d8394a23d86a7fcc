package amd64

// flow settles the kind of an instruction whose shape says that it may not go on to the next one.
func (i *Inst) flow() {
	if i.Map == Map0F {
		i.Kind = i.flow0F()
	} else {
		i.Kind = i.flowPrimary()
	}
	i.Notrack = i.Prefixes&SegDS3E != 0 && (i.Kind == IndirectJump || i.Kind == IndirectCall)
}

func (i *Inst) flowPrimary() Kind {
	switch op := i.Opcode; op {
	case 0xC2, 0xC3:
		return Return
	case 0xC7:
		if i.group() == 7 {
			return XBegin
		}
	case 0xCA, 0xCB, 0xCF:
		return FarBranch
	case 0xCC, 0xF1:
		return Breakpoint
	case 0xCD:
		return Syscall
	case 0xE0, 0xE1, 0xE2, 0xE3:
		return ShortLoop
	case 0xE8:
		return Call
	case 0xE9, 0xEB:
		return Jump
	case 0xF4:
		return Halt
	case 0xFF:
		switch i.group() {
		case 2:
			return IndirectCall
		case 4:
			return IndirectJump
		case 3, 5:
			return FarBranch
		}
	default:
		if op>>4 == 7 {
			return CondJump
		}
	}
	return Other
}

func (i *Inst) flow0F() Kind {
	switch op := i.Opcode; op {
	case 0x01:
		if i.Mod != 3 {
			return Other
		}
		switch i.group()<<3 | i.RM&7 {
		case 0o12: // clac; with F3 and F2 eretu and erets
			if i.mandatoryPrefix() >= ppF3 {
				return FarBranch
			}
		case 0o54: // uiret
			if i.mandatoryPrefix() == ppF3 {
				return FarBranch
			}
		}
	case 0x05, 0x34:
		return Syscall
	case 0x07, 0x35, 0xAA:
		return FarBranch
	case 0x0B, 0xB9, 0xFF:
		return Undefined
	default:
		if op>>4 == 8 {
			return CondJump
		}
	}
	return Other
}

// Target returns where a direct branch (jmp, jcc, call, loop, jrcxz, xbegin) at address pc goes; false for all else.
func (i *Inst) Target(pc uint64) (uint64, bool) {
	if i.RelSize == 0 {
		return 0, false
	}
	return pc + uint64(i.Len) + uint64(int64(i.Rel)), true
}

// MemTarget returns the address of the RIP-relative operand of an instruction at address pc; false if it has none. A
// segment base is not added.
func (i *Inst) MemTarget(pc uint64) (uint64, bool) {
	if !i.RIPRelative {
		return 0, false
	}
	a := pc + uint64(i.Len) + uint64(int64(i.Disp))
	if i.Prefixes&Addr67 != 0 {
		a = uint64(uint32(a))
	}
	return a, true
}

// Ends reports whether control never goes on to the next instruction: jmp, ret, far jmp and ret and the returns of
// kernels, ud0 to ud2, and hlt, which no user program survives. A call that never returns is not known here.
func (i *Inst) Ends() bool {
	switch i.Kind {
	case Jump, IndirectJump, Return, Undefined, Halt:
		return true
	case FarBranch:
		return i.Map != MapPrimary || i.Opcode != 0xFF || i.group() != 3
	}
	return false
}

// IsEndbr64 reports whether the instruction is endbr64, where an indirect branch may land (Intel SDM vol. 1 §17.3).
func (i *Inst) IsEndbr64() bool {
	return i.Encoding == Legacy && i.Map == Map0F && i.Opcode == 0x1E && i.Prefixes&RepF3 != 0 &&
		i.Mod == 3 && i.group() == 7 && i.RM&7 == 2
}

// IsNop reports whether the instruction is one of those with which compilers and assemblers fill: nop (90), the
// multi-byte nop (0F 1F /0), and a 64-bit mov or lea of a register to itself. pause and endbr64 are not.
func (i *Inst) IsNop() bool {
	if i.Encoding != Legacy {
		return false
	}
	switch {
	case i.Map == MapPrimary && i.Opcode == 0x90:
		return i.REX&RexB == 0 && i.Prefixes&RepF3 == 0
	case i.Map == Map0F && i.Opcode == 0x1F:
		return i.group() == 0
	case i.Map != MapPrimary || !i.wide():
		return false
	case i.Opcode == 0x89 || i.Opcode == 0x8B || i.Opcode == 0x87:
		return i.Mod == 3 && i.Reg == i.RM
	case i.Opcode == 0x8D:
		return i.Base == int8(i.Reg) && i.Index == NoReg && i.Disp == 0 && i.Prefixes&Addr67 == 0
	}
	return false
}

// IsPadding reports whether the instruction is what stands between functions: a nop or int3.
func (i *Inst) IsPadding() bool {
	return i.IsNop() || i.Kind == Breakpoint && i.Opcode == 0xCC
}
