package arm64

// Target returns where a direct branch (b, b.cond, bc.cond, bl, cbz, cbnz, tbz, tbnz) at address pc goes; false for all
// else.
func (i *Inst) Target(pc uint64) (uint64, bool) {
	switch i.Kind {
	case Jump, CondJump, Call:
		return pc + uint64(i.Rel), true
	}
	return 0, false
}

// MemTarget returns the address that an instruction at address pc computes or accesses relative to PC (adr, adrp,
// ldr of a literal, prfm of one); false if it does neither. adrp gives the first byte of a page of 4 KiB.
func (i *Inst) MemTarget(pc uint64) (uint64, bool) {
	switch {
	case i.Class == Address && i.bit(31):
		return pc&^0xFFF + uint64(i.Rel), true
	case i.Class == Address, i.Class == LoadLiteral:
		return pc + uint64(i.Rel), true
	}
	return 0, false
}

// IsADRP reports whether the instruction is adrp.
func (i *Inst) IsADRP() bool { return i.Class == Address && i.bit(31) }

// Ends reports whether control never goes on to the next instruction: b, br, ret, eret, udf, and brk and hlt, which no
// program survives without a handler of its own. A call that never returns is not known here.
func (i *Inst) Ends() bool {
	switch i.Kind {
	case Jump, IndirectJump, Return, ExceptionReturn, Undefined:
		return true
	case Breakpoint:
		return i.Class == Exception && (i.field(21, 3) == 0b001 || i.field(21, 3) == 0b010)
	}
	return false
}

// IsLandingPad reports whether an indirect branch of some kind may arrive at the instruction where the page is guarded
// (PSTATE.BTYPE, Arm ARM D8.5): bti with an operand, paciasp, pacibsp, brk, hlt. bti without an operand is none.
func (i *Inst) IsLandingPad() bool {
	switch i.Class {
	case LandingPad:
		return i.field(6, 2) != 0
	case Sign:
		return i.Word&^0x40 == 0xD503233F // paciasp, pacibsp
	case Exception:
		return i.field(21, 3) == 0b001 || i.field(21, 3) == 0b010
	}
	return false
}

// IsNop reports whether the instruction is nop.
func (i *Inst) IsNop() bool { return i.Word == 0xD503201F }

// IsPadding reports whether the instruction is what stands between functions: nop, brk or udf.
func (i *Inst) IsPadding() bool {
	return i.IsNop() || i.Ends() && (i.Kind == Breakpoint || i.Kind == Undefined)
}

// Movable reports whether the instruction does the same at another address: it neither names an address relative to
// its own, nor leaves its own behind in a register or a signature. What Retarget or a stub must do for the others is
// theirs to know.
func (i *Inst) Movable() bool {
	if i.PCRelative || i.Class == SignPC || i.Class == BranchAuthPC {
		return false
	}
	return i.Kind != Call && i.Kind != IndirectCall
}
