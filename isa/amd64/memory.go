package amd64

// MayFault reports whether the instruction can raise a fault at its own address for which a program may have a
// handler that goes by that address: it accesses memory through an operand or a string register, or divides, or is
// undefined or privileged. Pushes, pops, calls and returns do not count, nor do operands in the thread's own stack (RSP and a
// displacement of at least −128, the red zone). lea, nop and prefetch access nothing. Floating-point exceptions,
// which are masked unless a program asks for them, are left out.
func (i *Inst) MayFault() bool {
	switch i.Kind {
	case Undefined, Breakpoint, Halt:
		return true
	case FarBranch:
		return true
	}
	if i.HasMem && i.accesses() && !i.ownStack() {
		return true
	}
	switch i.Map {
	case MapPrimary:
		switch op := i.Opcode; {
		case i.stringOp() || op == 0xD7: // and xlat
			return true
		case op == 0xF6 || op == 0xF7: // div, idiv
			return i.group() >= 6
		case op >= 0xE4 && op <= 0xE7 || op >= 0xEC && op <= 0xEF: // in, out
			return true
		case op == 0xFA || op == 0xFB || op == 0x8E: // cli, sti, mov to a segment register
			return true
		}
	case Map0F:
		switch op := i.Opcode; op {
		case 0xF7: // maskmovq, maskmovdqu
			return true
		case 0xA6, 0xA7: // VIA PadLock works on memory at rsi and rdi
			return i.Encoding == Legacy
		case 0x00, 0x01: // the system groups: too many to tell apart but for those with no operand in user code
			return i.Encoding == Legacy && !i.userSystem()
		case 0x06, 0x08, 0x09, 0x20, 0x21, 0x22, 0x23, 0x30, 0x32, 0x33, 0x37:
			return i.Encoding == Legacy
		}
	}
	return false
}

// accesses reports whether the memory operand is more than an address or a hint.
func (i *Inst) accesses() bool {
	if i.Encoding != Legacy {
		return true
	}
	switch i.Map {
	case MapPrimary:
		return i.Opcode != 0x8D
	case Map0F:
		switch i.Opcode {
		case 0x0D, 0x18, 0x19, 0x1C, 0x1D, 0x1E, 0x1F:
			return false
		}
	}
	return true
}

// ownStack reports whether the memory operand lies in what the thread has allocated of its stack, or in its red zone
// (System V AMD64 ABI §3.2.2).
func (i *Inst) ownStack() bool {
	return i.Base == int8(RSP) && i.Index == NoReg && i.Disp >= -128 && i.Prefixes&(SegFS|SegGS|Addr67) == 0
}

// userSystem reports whether this is one of the forms of 0F 01 that neither fault in user mode nor access memory:
// xgetbv, xend, xtest, rdtscp, rdpkru, wrpkru, serialize.
func (i *Inst) userSystem() bool {
	if i.Opcode != 0x01 || i.Mod != 3 {
		return false
	}
	switch i.group()<<3 | i.RM&7 {
	case 0o20, 0o25, 0o26, 0o71, 0o56, 0o57, 0o50:
		return true
	}
	return false
}

// WritesReg reports whether the instruction itself may write r; it errs towards true as [Inst.GPRWritten] does.
func (i *Inst) WritesReg(r Reg) bool { return i.GPRWritten()&r.Mask() != 0 }
