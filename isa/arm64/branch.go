package arm64

// branch is what branches, raises exceptions or reaches the system (Arm ARM C4.1.65 and below).
func (i *Inst) branch() bool {
	switch i.field(29, 3) {
	case 0b000, 0b100:
		i.Class, i.Kind = BranchImm, Jump
		if i.bit(31) {
			i.Kind = Call
			i.writes(LR)
		}
		return i.relative(i.signed(0, 26) * 4)
	case 0b001, 0b101:
		i.Kind = CondJump
		i.reads(i.Rd())
		if i.bit(25) {
			i.Class = TestBit
			return i.relative(i.signed(5, 14) * 4)
		}
		i.Class = CompareZero
		return i.relative(i.signed(5, 19) * 4)
	case 0b010:
		return i.conditional()
	case 0b110:
		switch {
		case i.bit(25):
			return i.branchRegister()
		case i.bit(24):
			return i.system()
		}
		return i.exception()
	}
	return false
}

// relative takes note of a distance from the instruction.
func (i *Inst) relative(distance int64) bool {
	i.Rel, i.PCRelative = distance, true
	return true
}

// conditional is b.cond and bc.cond; and, of FEAT_PAuth_LR, the returns that name the instruction that has signed.
func (i *Inst) conditional() bool {
	switch i.field(24, 2) {
	case 0b00:
		i.Class, i.Kind, i.readsFlags = BranchCond, CondJump, true
		return i.relative(i.signed(5, 19) * 4)
	case 0b01:
		i.Class, i.Kind = BranchAuthPC, Return
		i.reads(LR)
		i.readsSP(SP)
		i.writes(LR)
		i.relative(-4 * int64(i.field(5, 16)))
		return i.field(22, 2) == 0 && i.Rd() == 31
	}
	return false
}

// exception is what calls or stops for the system. The flags and registers are there for it to see.
func (i *Inst) exception() bool {
	i.Class, i.Kind, i.readsFlags = Exception, Breakpoint, true
	if i.field(2, 3) != 0 {
		return false
	}
	switch i.field(21, 3)<<2 | i.field(0, 2) {
	case 0b00001: // svc: the system call's conventions, of which Linux changes x0 only
		i.Kind = Syscall
		i.read |= 1<<9 - 1
		i.writes(0)
		return true
	case 0b00010, 0b00011: // hvc, smc
		i.Kind = Syscall
		return true
	case 0b00100, 0b01000, 0b10101, 0b10110, 0b10111: // brk, hlt, dcps1 to dcps3
		return true
	case 0b01100: // tcancel, which goes back to tstart
		return true
	}
	return false
}

// branchRegister is all that branches to an address in a register.
func (i *Inst) branchRegister() bool {
	if i.Rm() != 31 {
		return false
	}
	op3, op4, n := i.field(10, 6), i.field(0, 5), i.Rn()
	auth := op3&^1 == 0b000010
	if !auth && (op3 != 0 || op4 != 0) {
		return false
	}
	i.Class = BranchReg
	if auth {
		i.Class = BranchAuth
	}
	i.reads(n)
	switch i.field(21, 4) {
	case 0b0000, 0b0001: // br, blr, braaz, blraaz: without a modifier op4 is all ones
		if i.Kind = IndirectJump; i.bit(21) {
			i.Kind = IndirectCall
			i.writes(LR)
		}
		return !auth || op4 == 31
	case 0b1000, 0b1001: // braa, blraa: op4 is the modifier
		if i.Kind = IndirectJump; i.bit(21) {
			i.Kind = IndirectCall
			i.writes(LR)
		}
		i.readsSP(i.Rd())
		return auth
	case 0b0010: // ret, retaa; retaasppcr names the signing instruction's address in a register
		i.Kind = Return
		if !auth {
			return true
		}
		i.reads(LR)
		i.writes(LR)
		i.readsSP(SP)
		if op4 != 31 {
			i.Class = BranchAuthPC
			i.reads(i.Rd())
		}
		return n == 31
	case 0b0100: // eret, eretaa
		i.Kind = ExceptionReturn
		if auth {
			i.readsSP(SP)
		}
		return n == 31 && (!auth || op4 == 31)
	case 0b0101: // drps
		i.Kind = ExceptionReturn
		return n == 31 && !auth
	}
	return false
}

// system is hints, barriers, flags, system registers and system instructions.
func (i *Inst) system() bool {
	if i.bit(23) {
		return false
	}
	if i.bit(22) {
		return i.systemPair()
	}
	t := i.Rd()
	switch {
	case i.field(20, 1) == 1: // mrs, msr
		if i.bit(21) {
			i.Class = MoveFromSystem
			i.writes(t)
			i.readsFlags = i.SystemRegister() == SystemNZCV
			i.writesFlags = i.SystemRegister()&^1 == randomRNDR // whether there was a number is told in NZCV
		} else {
			i.Class = MoveToSystem
			i.reads(t)
			i.writesFlags = i.SystemRegister() == SystemNZCV
		}
		return true
	case i.field(19, 1) == 1: // sys, sysl
		i.Class = System
		if i.bit(21) {
			i.writes(t)
		} else {
			i.reads(t)
		}
		// A system instruction may have a register that it both reads and writes (gcspopm), and none has more.
		i.reads(t)
		return true
	}
	return i.systemZero()
}

// systemPair is the 128-bit forms, of two registers (FEAT_D128, FEAT_SYSINSTR128).
func (i *Inst) systemPair() bool {
	t := i.Rd()
	if t&1 != 0 && (t != 31 || i.bit(20) || i.bit(21) || !i.bit(19)) {
		return false
	}
	switch {
	case i.bit(20) && i.bit(21):
		i.Class = MoveFromSystem
		i.writes(t)
		i.writes(t + 1)
	case i.bit(20):
		i.Class = MoveToSystem
		i.reads(t)
		i.reads(t + 1)
	case i.bit(19) && !i.bit(21):
		i.Class = System
		i.reads(t)
		if t != 31 {
			i.reads(t + 1)
		}
	default:
		return false
	}
	return true
}

// systemZero is where op0 is 0: hints, barriers, PSTATE, and the few instructions with a register.
func (i *Inst) systemZero() bool {
	op1, crn, crm, op2, t := i.field(16, 3), i.field(12, 4), i.field(8, 4), i.field(5, 3), i.Rd()
	if i.bit(21) { // tstart, ttest
		i.Class = System
		i.writes(t)
		return op1 == 3 && crn == 3 && crm <= 1 && op2 == 3
	}
	switch {
	case crn == 1: // wfet, wfit
		i.Class = System
		i.reads(t)
		return op1 == 3 && crm == 0 && op2 <= 1
	case t != 31:
		return false
	case crn == 2:
		i.hint(crm<<3 | op2)
		return op1 == 3
	case crn == 3:
		i.Class = Barrier
		switch op2 {
		case 1: // dsb with nXS
			return op1 == 3 && crm&3 == 2
		case 2, 4, 5, 6: // clrex, dsb, dmb, isb
			return op1 == 3
		case 3: // tcommit
			return op1 == 3 && crm == 0
		case 7: // sb
			return op1 == 3
		}
		return false
	case crn == 4:
		return i.pstate(op1<<3|op2, crm)
	}
	return false
}

// pstate is msr with an immediate, and what turns flags over.
func (i *Inst) pstate(op, crm uint32) bool {
	i.Class = MoveToSystem
	switch op {
	case 0o00, 0o01, 0o02: // cfinv, xaflag, axflag
		i.Class, i.readsFlags, i.writesFlags = Plain, true, true
		return op != 0 || crm == 0
	case 0o10: // allint, pm
		return crm <= 3
	case 0o33: // svcr: smstart, smstop
		return crm <= 7
	case 0o03, 0o04, 0o05, 0o31, 0o32, 0o34, 0o36, 0o37: // uao, pan, spsel, ssbs, dit, tco, daifset, daifclr
		return true
	}
	return false
}

// hint is the hint space: each of its 128 instructions is allocated, and those that aren't known do nothing.
func (i *Inst) hint(n uint32) {
	i.Class = Hint
	switch n {
	case 7: // xpaclri
		i.Class = Strip
		i.reads(LR)
		i.writes(LR)
	case 8, 10, 12, 14: // pacia1716, pacib1716, autia1716, autib1716
		i.signs(n >= 12)
		i.reads(X16)
		i.reads(X17)
		i.writes(X17)
	case 24, 26, 28, 30: // paciaz, pacibz, autiaz, autibz
		i.signs(n >= 28)
		i.reads(LR)
		i.writes(LR)
	case 25, 27, 29, 31: // paciasp, pacibsp, autiasp, autibsp
		i.signs(n >= 28)
		i.reads(LR)
		i.readsSP(SP)
		i.writes(LR)
	case 32, 34, 36, 38: // bti
		i.Class = LandingPad
	case 39: // pacm: makes what signs next do so by PC
		i.Class = SignPC
	case 40: // chkfeat
		i.reads(X16)
		i.writes(X16)
	}
}

func (i *Inst) signs(authenticates bool) {
	i.Class = Sign
	if authenticates {
		i.Class = Authenticate
	}
}
