package arm64

// GPRRead returns the general registers on whose old value the instruction depends, those of addresses included, as a
// mask of [Reg.Mask] bits. It errs towards too many: of SVE and SME all that may be read is in it. What the kernel reads
// in a system call is x0 to x8; what it sees at a breakpoint is not.
func (i *Inst) GPRRead() uint32 { return i.read }

// GPRWritten returns the general registers that the instruction itself may write, as a mask of [Reg.Mask] bits. It errs
// towards too many. What a callee does is not in it.
func (i *Inst) GPRWritten() uint32 { return i.written }

// ReadsReg reports whether the instruction may depend on r.
func (i *Inst) ReadsReg(r Reg) bool { return i.read&r.Mask() != 0 }

// WritesReg reports whether the instruction itself may write r.
func (i *Inst) WritesReg(r Reg) bool { return i.written&r.Mask() != 0 }

// FlagsRead reports whether the instruction reads any of N, Z, C and V. It errs towards true: what hands all flags to the
// kernel or to a signal handler (svc, brk) counts as reading them, and so do SVE and SME.
func (i *Inst) FlagsRead() bool { return i.readsFlags }

// FlagsWritten reports whether the instruction certainly overwrites all of N, Z, C and V and reads none of them: whatever
// they were before is lost. It errs towards false.
func (i *Inst) FlagsWritten() bool { return i.writesFlags && !i.readsFlags }

// FlagsChanged reports whether the instruction may write any of N, Z, C and V. It errs towards true: of SVE and SME none
// is told apart.
func (i *Inst) FlagsChanged() bool { return i.writesFlags }

// Immediate returns what an instruction of class [AddSubImm] adds or subtracts: 0 to 0xFFF, or that many times 4096 (Arm ARM C6.2.5). Of others it
// means nothing.
func (i *Inst) Immediate() int64 { return int64(i.field(10, 12)) << (12 * i.field(22, 1)) }

// StackDelta returns by how many bytes the instruction moves SP, and whether that is known. It is known and zero where
// SP is not written, and for a call, as seen after the callee's return.
func (i *Inst) StackDelta() (delta int, known bool) {
	if !i.WritesReg(SP) {
		return 0, true
	}
	switch {
	case i.Writeback && i.Base == SP && !(i.PostIndex && i.vectorStructure()):
		return int(i.Disp), true
	case i.Class == AddSubImm && i.Rn() == SP && i.bit(31): // of 32 bits it clears the upper half
		delta = int(i.Immediate())
		if i.bit(30) {
			delta = -delta
		}
		return delta, true
	}
	return 0, false
}

// vectorStructure reports whether this is a load or store of structures, whose step is not in Disp.
func (i *Inst) vectorStructure() bool { return i.field(25, 5) == 0b00110 && i.bit(26) }

// MayFault reports whether the instruction can raise a fault at its own address for which a program may have a
// handler that goes by that address: it accesses memory or is undefined in user mode. Operands at SP with a displacement
// that isn't below it do not count.
func (i *Inst) MayFault() bool {
	switch i.Kind {
	case Undefined, Breakpoint, ExceptionReturn:
		return true
	}
	switch i.Class {
	case Load, Store, LoadPair, StorePair, Exclusive, Ordered, Atomic, Tag:
		return i.Base != SP || i.Index || i.Disp < 0 && !i.Writeback
	case LoadLiteral:
		return i.Size != 0
	case MemoryCopy, System, SVE, SME, MoveFromSystem, MoveToSystem, Authenticate, BranchAuth, BranchAuthPC, SignPC:
		return true
	}
	return false
}
