package amd64

// MaxLen is the longest instruction in bytes; the processor refuses longer ones (Intel SDM vol. 2 §2.3.11).
const MaxLen = 15

// Kind says what an instruction does to the flow of control.
type Kind uint8

// The kinds. Everything that only goes on to the next instruction is Other.
const (
	Other        Kind = iota
	Jump              // direct jmp
	CondJump          // jcc rel8 or rel32
	ShortLoop         // loop, loope, loopne, jrcxz, jecxz: conditional, with an 8-bit displacement only
	Call              // direct near call
	IndirectJump      // near jmp through a register or memory
	IndirectCall      // near call through a register or memory
	Return            // near ret, with or without an operand or a rep or bnd prefix
	FarBranch         // far call, jmp and ret, iret, sysret, sysexit, rsm, eretu, erets, uiret
	Syscall           // syscall, sysenter, int n
	Breakpoint        // int3, int1
	Undefined         // ud0, ud1, ud2
	Halt              // hlt; in user mode it faults
	XBegin            // xbegin: continues at its target when the transaction aborts
)

var kindNames = [...]string{
	"other", "jump", "conditional jump", "short loop", "call", "indirect jump", "indirect call", "return",
	"far branch", "syscall", "breakpoint", "undefined", "halt", "xbegin",
}

// String returns the kind in words.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown kind"
}

// Encoding is the family of prefixes by which the opcode was reached.
type Encoding uint8

// The encodings.
const (
	Legacy Encoding = iota // none, or REX (Intel SDM vol. 2 §2.1, §2.2)
	VEX                    // C4 and C5 (§2.3)
	EVEX                   // 62 (§2.7)
	XOP                    // 8F (AMD64 APM vol. 6 §1.1.4)
)

// Opcode maps, the values of [Inst.Map].
const (
	MapPrimary uint8 = 0  // one byte
	Map0F      uint8 = 1  // 0F
	Map0F38    uint8 = 2  // 0F 38
	Map0F3A    uint8 = 3  // 0F 3A
	Map5       uint8 = 5  // EVEX only
	Map6       uint8 = 6  // EVEX only
	MapXOP8    uint8 = 8  // XOP with an 8-bit immediate
	MapXOP9    uint8 = 9  // XOP without an immediate
	MapXOPA    uint8 = 10 // XOP with a 32-bit immediate
	Map3DNow   uint8 = 15 // 0F 0F; the opcode is the byte behind the operands
)

// Prefixes is the set of prefixes of an instruction. VEX, EVEX and XOP carry 66, F3 and F2 in a field of their own
// (pp); Decode enters it here in the same way.
type Prefixes uint16

// The legacy prefixes (Intel SDM vol. 2 §2.1.1). Of F2 and F3 only the last one counts, and of FS and GS too, and
// only that one is in the set. The other segments have no effect on addresses in 64-bit mode.
const (
	Opsize66 Prefixes = 1 << iota
	Addr67
	LockF0
	RepF3
	RepneF2
	SegFS
	SegGS
	SegDS3E // also the notrack prefix
	SegCS2E
	SegSS36
	SegES26
)

// REX holds the bits that widen an instruction's operands, wherever the encoding keeps them and never inverted: 0100WRXB.
type REX uint8

// The bits of REX (Intel SDM vol. 2 §2.2.1).
const (
	RexB       REX = 1 << iota // widens ModRM.rm, the SIB base or the opcode's register
	RexX                       // widens the SIB index
	RexR                       // widens ModRM.reg
	RexW                       // 64-bit operands
	RexPresent REX = 0x40      // there is a REX prefix that counts: byte registers 4 to 7 are spl, bpl, sil and dil
)

// Inst is a decoded instruction. It holds no reference to the bytes it was decoded from.
//
// Offsets (OpcodeOff, DispOff, RelOff, ImmOff) are in bytes from the start of the instruction and mean something
// only where the size beside them is not zero. The operand of ModRM.reg that extends the opcode is Reg&7.
type Inst struct {
	Imm  int64 // immediate, sign-extended from ImmSize, but see ImmSize
	Disp int32 // displacement, sign-extended from DispSize; EVEX 8-bit ones are not yet scaled (SDM vol. 2 §2.7.5)
	Rel  int32 // displacement of a direct branch from the end of the instruction

	Prefixes Prefixes
	Len      uint8 // 1 to MaxLen
	Kind     Kind
	Encoding Encoding
	Map      uint8 // MapPrimary, Map0F …
	Opcode   uint8 // the byte in that map
	REX      REX

	OpcodeOff uint8 // offset of the opcode byte

	HasModRM bool
	HasMem   bool // there is a memory operand: ModRM with Mod ≠ 3, or the absolute address of mov A0 to A3
	Notrack  bool // indirect jmp or call that need not end at endbr64 (SDM vol. 1 §17.3.2)

	Mod uint8 // ModRM.mod, 0 to 3
	Reg uint8 // ModRM.reg, widened: 0 to 15, with EVEX 0 to 31; without ModRM the opcode's register (push, pop, bswap …)
	RM  uint8 // ModRM.rm, widened in the same way when Mod is 3; otherwise 0 to 7 as encoded
	V   uint8 // VEX.vvvv, not inverted: 0 to 15, with EVEX 0 to 31

	Base        int8  // RAX to R15, NoReg, or RIP
	Index       int8  // RAX to R15 or NoReg; with gathers and scatters the number of a vector register, 0 to 31
	Scale       uint8 // 1, 2, 4 or 8; 0 without an index
	DispOff     uint8
	DispSize    uint8 // 0, 1 or 4
	RIPRelative bool  // Base is RIP; DispSize is 4

	RelOff  uint8
	RelSize uint8 // 0, 1, 2 (xbegin only) or 4

	ImmOff uint8
	// ImmSize is 0, 1, 2, 4 or 8; and 3 for enter, whose Imm is the 16-bit size | level << 16. Imm is not
	// sign-extended for ret, enter, int and SSE4a's two bytes; for mov A0 to A3 it is the absolute address.
	ImmSize uint8
}

// group returns the opcode extension, which REX does not widen.
func (i *Inst) group() uint8 { return i.Reg & 7 }

// wide reports whether operands are 64 bits by REX.W.
func (i *Inst) wide() bool { return i.REX&RexW != 0 }

// word reports whether operands are 16 bits; REX.W goes before the prefix (Intel SDM vol. 2 §2.2.1.2).
func (i *Inst) word() bool { return i.Prefixes&Opsize66 != 0 && i.REX&RexW == 0 }
