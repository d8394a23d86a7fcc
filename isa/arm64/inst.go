package arm64

import "strconv"

// Len is the length of every instruction in bytes.
const Len = 4

// Reg is a general register: 0 to 30, or SP (31). It is the number of instructions and of DWARF. The zero register is
// none: it is never in a mask.
type Reg uint8

// The registers that have a role of their own (AAPCS64 §6.1.1, besides [FP], [LR] and [SP]).
const (
	X8  = 8  // address of a result in memory; number of a system call
	X16 = 16 // IP0: linkers' veneers may change it between a call and the function's first instruction
	X17 = 17 // IP1: the same
	X18 = 18 // the platform's: on Android the shadow call stack
)

// Mask returns the register's bit in the masks of [Inst.GPRRead] and [Inst.GPRWritten]; zero above SP.
func (r Reg) Mask() uint32 {
	if r > SP {
		return 0
	}
	return 1 << r
}

// String returns the register's name in lower case, or "reg(n)" for a number above SP.
func (r Reg) String() string {
	switch {
	case r < SP:
		return "x" + strconv.Itoa(int(r))
	case r == SP:
		return "sp"
	}
	return "reg(" + strconv.Itoa(int(r)) + ")"
}

// Kind says what an instruction does to the flow of control.
type Kind uint8

// The kinds. Everything that only goes on to the next instruction is Other.
const (
	Other           Kind = iota
	Jump                 // b
	CondJump             // b.cond, bc.cond, cbz, cbnz, tbz, tbnz
	Call                 // bl
	IndirectJump         // br, braa, braaz, brab, brabz
	IndirectCall         // blr, blraa, blraaz, blrab, blrabz
	Return               // ret, retaa, retab, retaasppc …, through whatever register
	ExceptionReturn      // eret, eretaa, eretab, drps; undefined in user mode
	Syscall              // svc, hvc, smc
	Breakpoint           // brk, hlt, dcps1 to dcps3
	Undefined            // udf
)

var kindNames = [...]string{
	"other", "jump", "conditional jump", "call", "indirect jump", "indirect call", "return", "exception return",
	"syscall", "breakpoint", "undefined",
}

// String returns the kind in words.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// Class says what kind of instruction a word is, as far as somebody has asked for it.
type Class uint8

// The classes.
const (
	Plain          Class = iota // computes in registers, and nothing else
	BranchImm                   // b, bl
	BranchCond                  // b.cond, bc.cond
	CompareZero                 // cbz, cbnz
	TestBit                     // tbz, tbnz
	BranchReg                   // br, blr, ret, eret, drps
	BranchAuth                  // the same with a signed address: braa, blraa, retaa, eretaa …
	BranchAuthPC                // retaasppc, retabsppc and with a register: the address of the signing instruction matters
	Address                     // adr, adrp
	LoadLiteral                 // ldr, ldrsw, of a general or a vector register, prfm, relative to PC
	AddSubImm                   // add, adds, sub, subs with an immediate; cmp, cmn, mov to and from SP are among them
	LandingPad                  // bti, with any operand
	Sign                        // paciasp, pacibsp, paciaz, pacia1716, pacia …
	SignPC                      // paciasppc, autiasppc …: the result depends on the instruction's own address or names another's
	Authenticate                // autiasp, autibsp, autiaz, autia1716, autia …
	Strip                       // xpaclri, xpaci, xpacd
	Hint                        // nop, yield, wfe, csdb, esb, gcs and the rest of the hint space
	Barrier                     // dsb, dmb, isb, sb, clrex, tcommit
	Exception                   // svc, hvc, smc, brk, hlt, dcps1 to dcps3, tcancel
	Reserved                    // udf
	MoveFromSystem              // mrs, mrrs
	MoveToSystem                // msr, msrr
	System                      // sys, sysl, sysp, wfet, wfit, tstart, ttest
	Load                        // one register or more, with any addressing but the literal's
	Store                       //
	LoadPair                    // two registers
	StorePair                   //
	Exclusive                   // ldxr, stxr and pairs
	Ordered                     // ldar, stlr, ldapr, stlur …
	Atomic                      // cas, casp, swp, ldadd …, of LSE, LSE128 and THE
	MemoryCopy                  // cpyp, setp …, of MOPS: may be interrupted between, with registers in step
	Prefetch                    // prfm, prfum, rprfm
	Tag                         // stg, ldg …, of MTE
	Vector                      // SIMD and floating point, without memory
	SVE                         // the encoding space of SVE
	SME                         // that of SME
	classCount
)

var classNames = [classCount]string{
	"plain", "branch", "conditional branch", "compare and branch", "test and branch", "branch to register",
	"authenticated branch", "authenticated branch by PC", "address", "literal", "add or subtract immediate", "landing pad",
	"sign", "sign by PC", "authenticate", "strip", "hint", "barrier", "exception", "reserved", "move from system register",
	"move to system register", "system", "load", "store", "load pair", "store pair", "exclusive", "ordered", "atomic",
	"memory copy", "prefetch", "tag", "vector", "SVE", "SME",
}

// String returns the class in words.
func (c Class) String() string {
	if c < classCount {
		return classNames[c]
	}
	return "unknown class"
}

// Inst is a decoded instruction.
type Inst struct {
	Word  uint32
	Kind  Kind
	Class Class

	// Rel is the distance in bytes from the instruction to what a PC-relative one names; for adrp from the instruction's
	// page of 4 KiB. It means something only where PCRelative is true.
	Rel        int64
	PCRelative bool

	// Base is the register of a memory operand's address, NoReg where there is none or it is PC.
	Base Reg
	// Disp is the displacement from Base in bytes; with PostIndex it is what Base grows by afterwards.
	Disp      int32
	Size      uint8 // bytes accessed for each register of a load or store; 0 where that isn't known or isn't memory
	Writeback bool  // Base is written, before (pre-indexed) or after the access
	PostIndex bool
	Index     bool // a register is added to Base: Rm

	readsFlags, writesFlags bool
	read, written           uint32
}

// NoReg is the value of [Inst.Base] where there is no such register.
const NoReg Reg = 0xFF

// Rd, Rn, Rm, Rt2 return the fields of the word in which registers stand. Which of them the instruction has depends on
// it; 31 is SP or the zero register. Rd is Rt for loads, stores and branches.
func (i *Inst) Rd() Reg { return Reg(i.Word & 31) }

// Rn returns bits 9 to 5: see [Inst.Rd].
func (i *Inst) Rn() Reg { return Reg(i.Word >> 5 & 31) }

// Rm returns bits 20 to 16: see [Inst.Rd]. With exclusives and atomics this is Rs.
func (i *Inst) Rm() Reg { return Reg(i.Word >> 16 & 31) }

// Rt2 returns bits 14 to 10: see [Inst.Rd]. With multiplications this is Ra.
func (i *Inst) Rt2() Reg { return Reg(i.Word >> 10 & 31) }

// field returns n bits of the word from bit low on.
func (i *Inst) field(low, n uint) uint32 { return i.Word >> low & (1<<n - 1) }

// bit reports whether a bit of the word is set.
func (i *Inst) bit(n uint) bool { return i.Word>>n&1 != 0 }

// signed returns n bits of the word from bit low on as a signed number.
func (i *Inst) signed(low, n uint) int64 { return int64(int32(i.Word<<(32-low-n)) >> (32 - n)) }

const spBit uint32 = 1 << SP

// reads and writes take note of general registers; 31 is the zero register, which is none.
func (i *Inst) reads(r Reg)  { i.read |= 1 << r &^ spBit }
func (i *Inst) writes(r Reg) { i.written |= 1 << r &^ spBit }

// readsSP and writesSP do the same where 31 is SP.
func (i *Inst) readsSP(r Reg)  { i.read |= 1 << r }
func (i *Inst) writesSP(r Reg) { i.written |= 1 << r }
