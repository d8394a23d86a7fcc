package arm64

import "github.com/callreel/callreel/isa"

// Cond is a condition as instructions encode it (Arm ARM C1.2.4). With the lowest bit changed it is the opposite.
type Cond uint8

// The conditions.
const (
	CondEQ Cond = iota
	CondNE
	CondHS // unsigned, not below
	CondLO // unsigned, below
	CondMI // negative
	CondPL
	CondVS // overflow
	CondVC
	CondHI // unsigned, above
	CondLS // unsigned, not above
	CondGE
	CondLT
	CondGT
	CondLE
)

// SysReg is a system register as MRS and MSR encode it: op0, op1, CRn, CRm and op2.
type SysReg uint16

// The system registers that stubs use.
const (
	NZCV      SysReg = 3<<14 | 3<<11 | 4<<7 | 2<<3
	FPCR      SysReg = 3<<14 | 3<<11 | 4<<7 | 4<<3
	FPSR      SysReg = 3<<14 | 3<<11 | 4<<7 | 4<<3 | 1
	TPIDREL0  SysReg = 3<<14 | 3<<11 | 13<<7 | 2
	CNTFRQEL0 SysReg = 3<<14 | 3<<11 | 14<<7
	CNTVCTEL0 SysReg = 3<<14 | 3<<11 | 14<<7 | 2
)

// Mrs is mrs xt, reg.
func (a *Asm) Mrs(t isa.Reg, r SysReg) { a.Word(0xD5300000 | uint32(r&0x7FFF)<<5 | rd(t)) }

// Msr is msr reg, xt.
func (a *Asm) Msr(r SysReg, t isa.Reg) { a.Word(0xD5100000 | uint32(r&0x7FFF)<<5 | rd(t)) }

// B is b to a label.
func (a *Asm) B(l Label) { a.toLabel(0x14000000, reach26, l) }

// BTo is b to an address within ±128 MiB.
func (a *Asm) BTo(addr uint64) { a.to(0x14000000, reach26, addr) }

// Bl is bl to a label.
func (a *Asm) Bl(l Label) { a.toLabel(0x94000000, reach26, l) }

// BlTo is bl to an address within ±128 MiB.
func (a *Asm) BlTo(addr uint64) { a.to(0x94000000, reach26, addr) }

// BCond is b.cond to a label.
func (a *Asm) BCond(c Cond, l Label) { a.toLabel(0x54000000|uint32(c&15), reach19, l) }

// BCondTo is b.cond to an address within ±1 MiB.
func (a *Asm) BCondTo(c Cond, addr uint64) { a.to(0x54000000|uint32(c&15), reach19, addr) }

// Cbz is cbz xt to a label.
func (a *Asm) Cbz(t isa.Reg, l Label) { a.toLabel(0xB4000000|rd(t), reach19, l) }

// CbzW is cbz wt to a label.
func (a *Asm) CbzW(t isa.Reg, l Label) { a.toLabel(0x34000000|rd(t), reach19, l) }

// Cbnz is cbnz xt to a label.
func (a *Asm) Cbnz(t isa.Reg, l Label) { a.toLabel(0xB5000000|rd(t), reach19, l) }

// CbnzW is cbnz wt to a label.
func (a *Asm) CbnzW(t isa.Reg, l Label) { a.toLabel(0x35000000|rd(t), reach19, l) }

// testBit is the number of a bit in TBZ and TBNZ.
func (a *Asm) testBit(n uint8) uint32 {
	if n > 63 {
		a.refuse("a bit of number", n)
	}
	return uint32(n)>>5<<31 | uint32(n)&31<<19
}

// Tbz is tbz xt, #n to a label within ±32 KiB.
func (a *Asm) Tbz(t isa.Reg, n uint8, l Label) { a.toLabel(0x36000000|a.testBit(n)|rd(t), reach14, l) }

// Tbnz is tbnz xt, #n to a label within ±32 KiB.
func (a *Asm) Tbnz(t isa.Reg, n uint8, l Label) { a.toLabel(0x37000000|a.testBit(n)|rd(t), reach14, l) }

// Br is br xn.
func (a *Asm) Br(n isa.Reg) { a.Word(0xD61F0000 | rn(n)) }

// Blr is blr xn.
func (a *Asm) Blr(n isa.Reg) { a.Word(0xD63F0000 | rn(n)) }

// Ret is ret xn; LR in most functions.
func (a *Asm) Ret(n isa.Reg) { a.Word(0xD65F0000 | rn(n)) }

// Adr is adr xd to a label within ±1 MiB.
func (a *Asm) Adr(d isa.Reg, l Label) { a.toLabel(0x10000000|rd(d), reach21, l) }

// AdrTo is adr xd to an address within ±1 MiB.
func (a *Asm) AdrTo(d isa.Reg, addr uint64) { a.to(0x10000000|rd(d), reach21, addr) }

// AdrpTo is adrp xd to the page, of 4 KiB, of an address within ±4 GiB.
func (a *Asm) AdrpTo(d isa.Reg, addr uint64) { a.to(0x90000000|rd(d), reachADR4K, addr) }

// AddressOf puts an address within ±4 GiB into xd, by one or two instructions.
func (a *Asm) AddressOf(d isa.Reg, addr uint64) {
	if dist := int64(addr - a.PC()); dist >= -1<<20 && dist < 1<<20 {
		a.AdrTo(d, addr)
		return
	}
	a.AdrpTo(d, addr)
	if low := addr & 0xFFF; low != 0 {
		a.AddImm(d, d, int64(low))
	}
}

// Hints, by their numbers (Arm ARM C6.2.132). On a processor that doesn't know one of them it does nothing.
const (
	HintNop     = 0
	HintYield   = 1
	HintPACIASP = 25
	HintPACIBSP = 27
	HintAUTIASP = 29
	HintAUTIBSP = 31
	HintBTI     = 32
	HintBTIC    = 34
	HintBTIJ    = 36
	HintBTIJC   = 38
)

// Hint is hint #n, below 128.
func (a *Asm) Hint(n uint8) {
	if n > 127 {
		a.refuse("a hint of number", n)
	}
	a.Word(0xD503201F | uint32(n&127)<<5)
}

// Nop is nop.
func (a *Asm) Nop() { a.Hint(HintNop) }

// Brk is brk #n.
func (a *Asm) Brk(n uint16) { a.Word(0xD4200000 | uint32(n)<<5) }

// Svc is svc #0, a system call.
func (a *Asm) Svc() { a.Word(0xD4000001) }

// Isb is isb.
func (a *Asm) Isb() { a.Word(0xD5033FDF) }

// Dmb is dmb ish: a full barrier.
func (a *Asm) Dmb() { a.Word(0xD5033BBF) }

// DmbLoad is dmb ishld: loads before it come before loads and stores behind it.
func (a *Asm) DmbLoad() { a.Word(0xD50339BF) }

// DmbStore is dmb ishst: stores before it come before stores behind it.
func (a *Asm) DmbStore() { a.Word(0xD5033ABF) }

// FmovX is fmov xd, dn: the low half of a vector register.
func (a *Asm) FmovX(d, n isa.Reg) { a.Word(0x9E660000 | rn(n) | rd(d)) }

// CondJump is the b.cond, bc.cond, cbz or cbnz that a word is, to a label.
func (a *Asm) CondJump(word uint32, l Label) { a.toLabel(word&^((1<<19-1)<<5), reach19, l) }
