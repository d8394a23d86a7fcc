package amd64

import "fmt"

// Load64 is mov r64, m64.
func (a *Asm) Load64(dst Reg, m Mem) { a.op(true, uint8(dst), m, 0, 0x8B) }

// Load32 is mov r32, m32; the upper half becomes zero.
func (a *Asm) Load32(dst Reg, m Mem) { a.op(false, uint8(dst), m, 0, 0x8B) }

// Store64 is mov m64, r64.
func (a *Asm) Store64(m Mem, src Reg) { a.op(true, uint8(src), m, 0, 0x89) }

// Store32 is mov m32, r32.
func (a *Asm) Store32(m Mem, src Reg) { a.op(false, uint8(src), m, 0, 0x89) }

// Store8Imm is mov m8, imm8.
func (a *Asm) Store8Imm(m Mem, v uint8) {
	a.op(false, 0, m, 1, 0xC6)
	a.Raw(v)
}

// Store32Imm is mov m32, imm32.
func (a *Asm) Store32Imm(m Mem, v uint32) {
	a.op(false, 0, m, 4, 0xC7)
	a.imm32(v)
}

// Store64Imm is mov m64, imm32 sign-extended.
func (a *Asm) Store64Imm(m Mem, v int32) {
	a.op(true, 0, m, 4, 0xC7)
	a.imm32(uint32(v))
}

// Lea is lea r64, m. It leaves the flags alone.
func (a *Asm) Lea(dst Reg, m Mem) { a.op(true, uint8(dst), m, 0, 0x8D) }

// Mov is mov r64, r64.
func (a *Asm) Mov(dst, src Reg) { a.rr(true, src, dst, 0x89) }

// Mov32 is mov r32, r32; the upper half becomes zero.
func (a *Asm) Mov32(dst, src Reg) { a.rr(false, src, dst, 0x89) }

// MovImm32 is mov r32, imm32; the upper half becomes zero.
func (a *Asm) MovImm32(dst Reg, v uint32) {
	if dst >= 8 {
		a.Raw(0x41)
	}
	a.Raw(0xB8 | byte(dst&7))
	a.imm32(v)
}

// MovImm64 is movabs r64, imm64.
func (a *Asm) MovImm64(dst Reg, v uint64) {
	rex := byte(0x48)
	if dst >= 8 {
		rex |= 1
	}
	a.Raw(rex, 0xB8|byte(dst&7))
	a.imm32(uint32(v))
	a.imm32(uint32(v >> 32))
}

// Xadd64 is xadd m64, r64 without LOCK: one instruction, so a signal handler of the same thread sees it done or not begun.
func (a *Asm) Xadd64(m Mem, r Reg) { a.op(true, uint8(r), m, 0, 0x0F, 0xC1) }

// LockXadd64 is lock xadd m64, r64.
func (a *Asm) LockXadd64(m Mem, r Reg) { a.Raw(0xF0); a.Xadd64(m, r) }

// LockXadd32 is lock xadd m32, r32; the upper half of the register becomes zero.
func (a *Asm) LockXadd32(m Mem, r Reg) {
	a.Raw(0xF0)
	a.op(false, uint8(r), m, 0, 0x0F, 0xC1)
}

// LockCmpxchg64 is lock cmpxchg m64, r64: if RAX equals the memory, r64 is stored and ZF set.
func (a *Asm) LockCmpxchg64(m Mem, r Reg) {
	a.Raw(0xF0)
	a.Cmpxchg64(m, r)
}

// Cmpxchg64 is cmpxchg m64, r64: LockCmpxchg64 for what no other thread changes.
func (a *Asm) Cmpxchg64(m Mem, r Reg) { a.op(true, uint8(r), m, 0, 0x0F, 0xB1) }

// LockCmpxchg32 is lock cmpxchg m32, r32: if EAX equals the memory, r32 is stored and ZF set.
func (a *Asm) LockCmpxchg32(m Mem, r Reg) {
	a.Raw(0xF0)
	a.op(false, uint8(r), m, 0, 0x0F, 0xB1)
}

// BtMem is bt m64, r64: the bit of that number, counted from m and of any size, becomes CF.
func (a *Asm) BtMem(m Mem, r Reg) { a.op(true, uint8(r), m, 0, 0x0F, 0xA3) }

// LockBtsMem is lock bts m64, r64: as BtMem, and the bit is set.
func (a *Asm) LockBtsMem(m Mem, r Reg) {
	a.Raw(0xF0)
	a.op(true, uint8(r), m, 0, 0x0F, 0xAB)
}

// AddMem is add r64, m64.
func (a *Asm) AddMem(dst Reg, m Mem) { a.op(true, uint8(dst), m, 0, 0x03) }

// AddToMem is add m64, r64.
func (a *Asm) AddToMem(m Mem, src Reg) { a.op(true, uint8(src), m, 0, 0x01) }

// IncMem is inc m64.
func (a *Asm) IncMem(m Mem) { a.op(true, 0, m, 0, 0xFF) }

// Add is add r64, r64.
func (a *Asm) Add(dst, src Reg) { a.rr(true, src, dst, 0x01) }

// Sub is sub r64, r64.
func (a *Asm) Sub(dst, src Reg) { a.rr(true, src, dst, 0x29) }

// DivMem is div m64: RDX and RAX together, as one number, divided; RAX becomes the quotient and RDX the remainder.
func (a *Asm) DivMem(m Mem) { a.op(true, 6, m, 0, 0xF7) }

// Sub32 is sub r32, r32.
func (a *Asm) Sub32(dst, src Reg) { a.rr(false, src, dst, 0x29) }

// Or is or r64, r64.
func (a *Asm) Or(dst, src Reg) { a.rr(true, src, dst, 0x09) }

// And32Imm is and r32, imm32.
func (a *Asm) And32Imm(dst Reg, v uint32) {
	a.rr(false, 4, dst, 0x81)
	a.imm32(v)
}

// ShlImm is shl r64, n.
func (a *Asm) ShlImm(dst Reg, n uint8) {
	a.rr(true, 4, dst, 0xC1)
	a.Raw(n)
}

// ShrImm is shr r64, n.
func (a *Asm) ShrImm(dst Reg, n uint8) {
	a.rr(true, 5, dst, 0xC1)
	a.Raw(n)
}

// SarImm is sar r64, n.
func (a *Asm) SarImm(dst Reg, n uint8) {
	a.rr(true, 7, dst, 0xC1)
	a.Raw(n)
}

// ShlCL is shl r64, cl.
func (a *Asm) ShlCL(dst Reg) { a.rr(true, 4, dst, 0xD3) }

// ShrCL is shr r64, cl.
func (a *Asm) ShrCL(dst Reg) { a.rr(true, 5, dst, 0xD3) }

// SarCL is sar r64, cl.
func (a *Asm) SarCL(dst Reg) { a.rr(true, 7, dst, 0xD3) }

// Shl32Imm is shl r32, n; the upper half becomes zero.
func (a *Asm) Shl32Imm(dst Reg, n uint8) {
	a.rr(false, 4, dst, 0xC1)
	a.Raw(n)
}

// Cmp is cmp r64, r64.
func (a *Asm) Cmp(x, y Reg) { a.rr(true, y, x, 0x39) }

// Cmp32 is cmp r32, r32.
func (a *Asm) Cmp32(x, y Reg) { a.rr(false, y, x, 0x39) }

// CmpImm32 is cmp r32, imm32.
func (a *Asm) CmpImm32(x Reg, v uint32) {
	a.rr(false, 7, x, 0x81)
	a.imm32(v)
}

// CmpMem32 is cmp r32, m32.
func (a *Asm) CmpMem32(x Reg, m Mem) { a.op(false, uint8(x), m, 0, 0x3B) }

// CmpMem is cmp r64, m64.
func (a *Asm) CmpMem(x Reg, m Mem) { a.op(true, uint8(x), m, 0, 0x3B) }

// CmpMem32Imm8 is cmp m32, imm8 sign-extended.
func (a *Asm) CmpMem32Imm8(m Mem, v int8) {
	a.op(false, 7, m, 1, 0x83)
	a.Raw(byte(v))
}

// CmpMem32Imm is cmp m32, imm32.
func (a *Asm) CmpMem32Imm(m Mem, v uint32) {
	a.op(false, 7, m, 4, 0x81)
	a.imm32(v)
}

// CmpMem64Imm8 is cmp m64, imm8 sign-extended.
func (a *Asm) CmpMem64Imm8(m Mem, v int8) {
	a.op(true, 7, m, 1, 0x83)
	a.Raw(byte(v))
}

// Test is test r64, r64.
func (a *Asm) Test(x, y Reg) { a.rr(true, y, x, 0x85) }

// Test32 appends test of 32 bits.
func (a *Asm) Test32(x, y Reg) { a.rr(false, y, x, 0x85) }

// TestALImm is test r8, imm8 for one of al, cl, dl, bl.
func (a *Asm) TestALImm(r Reg, v uint8) {
	if r > RBX {
		a.Fail(fmt.Errorf("amd64: at %#x: test of the low byte of %s isn't known here", a.PC(), r))
	}
	a.Raw(0xF6, 0xC0|byte(r&3), v)
}

// TestMem32Imm is test m32, imm32.
func (a *Asm) TestMem32Imm(m Mem, v uint32) {
	a.op(false, 0, m, 4, 0xF7)
	a.imm32(v)
}

// Jcc is a conditional jump to a label, always in the rel32 form.
func (a *Asm) Jcc(c Cond, l Label) {
	a.Raw(0x0F, 0x80|byte(c))
	a.fixups = append(a.fixups, asmFixup{a.Len(), l})
	a.imm32(0)
}

// Jmp is a jump to a label, always in the rel32 form.
func (a *Asm) Jmp(l Label) {
	a.Raw(0xE9)
	a.fixups = append(a.fixups, asmFixup{a.Len(), l})
	a.imm32(0)
}

// JmpTo is jmp rel32 to an address.
func (a *Asm) JmpTo(addr uint64) { a.Raw(0xE9); a.rel32(addr, 0) }

// JccTo is jcc rel32 to an address.
func (a *Asm) JccTo(c Cond, addr uint64) { a.Raw(0x0F, 0x80|byte(c)); a.rel32(addr, 0) }

// CallTo is call rel32 to an address.
func (a *Asm) CallTo(addr uint64) { a.Raw(0xE8); a.rel32(addr, 0) }

// Call is call rel32 to a label.
func (a *Asm) Call(l Label) {
	a.Raw(0xE8)
	a.fixups = append(a.fixups, asmFixup{a.Len(), l})
	a.imm32(0)
}

// Ret is a near return.
func (a *Asm) Ret() { a.Raw(0xC3) }

// Push is push r64.
func (a *Asm) Push(r Reg) {
	if r >= 8 {
		a.Raw(0x41)
	}
	a.Raw(0x50 | byte(r&7))
}

// Pop is pop r64.
func (a *Asm) Pop(r Reg) {
	if r >= 8 {
		a.Raw(0x41)
	}
	a.Raw(0x58 | byte(r&7))
}

// Div32 is div r32: EDX:EAX by r, the quotient to EAX, the rest to EDX.
func (a *Asm) Div32(r Reg) { a.rr(false, 6, r, 0xF7) }

// Rdtsc reads the time-stamp counter into EDX:EAX.
func (a *Asm) Rdtsc() { a.Raw(0x0F, 0x31) }

// Lahf loads SF, ZF, AF, PF and CF into AH.
func (a *Asm) Lahf() { a.Raw(0x9F) }

// Sahf stores AH into SF, ZF, AF, PF and CF.
func (a *Asm) Sahf() { a.Raw(0x9E) }

// SetOAL is seto al.
func (a *Asm) SetOAL() { a.Raw(0x0F, 0x90, 0xC0) }

// AddALImm is add al, imm8. With AL from SetOAL and 0x7F it sets OF again.
func (a *Asm) AddALImm(v uint8) { a.Raw(0x04, v) }

// Syscall enters the kernel; RCX and R11 are clobbered.
func (a *Asm) Syscall() { a.Raw(0x0F, 0x05) }

// Pause is the spin-wait hint.
func (a *Asm) Pause() { a.Raw(0xF3, 0x90) }

// Cld clears the direction flag.
func (a *Asm) Cld() { a.Raw(0xFC) }

// SubMem appends sub dst, [m].
func (a *Asm) SubMem(dst Reg, m Mem) { a.op(true, uint8(dst), m, 0, 0x2B) }

// SubMem32 is sub r32, m32.
func (a *Asm) SubMem32(dst Reg, m Mem) { a.op(false, uint8(dst), m, 0, 0x2B) }

// SbbMem32 is sbb r32, m32: less the borrow that CF says, too.
func (a *Asm) SbbMem32(dst Reg, m Mem) { a.op(false, uint8(dst), m, 0, 0x1B) }

// Xchg appends xchg x, y.
func (a *Asm) Xchg(x, y Reg) { a.rr(true, x, y, 0x87) }

// LeaLabel appends lea dst, [l].
func (a *Asm) LeaLabel(dst Reg, l Label) {
	a.Raw(0x48|byte(dst>>3)<<2, 0x8D, byte(dst&7)<<3|5)
	a.fixups = append(a.fixups, asmFixup{a.Len(), l})
	a.imm32(0)
}

// JmpReg appends jmp r.
func (a *Asm) JmpReg(r Reg) {
	if r >= 8 {
		a.Raw(0x41)
	}
	a.Raw(0xFF, 0xE0|byte(r&7))
}

// CallReg is call r64.
func (a *Asm) CallReg(r Reg) {
	if r >= 8 {
		a.Raw(0x41)
	}
	a.Raw(0xFF, 0xD0|byte(r&7))
}

// vector appends an instruction with an XMM register and a memory operand, which may not be FS-relative.
func (a *Asm) vector(x uint8, m Mem, prefix, opcode byte) {
	a.Raw(prefix)
	a.op(false, x, m, 0, 0x0F, opcode)
}

// StoreX64 is movq m64, xmm.
func (a *Asm) StoreX64(m Mem, x uint8) { a.vector(x, m, 0x66, 0xD6) }

// StoreX32 is movd m32, xmm.
func (a *Asm) StoreX32(m Mem, x uint8) { a.vector(x, m, 0x66, 0x7E) }

// MovX is movq r64, xmm.
func (a *Asm) MovX(dst Reg, x uint8) {
	a.Raw(0x66)
	a.rr(true, Reg(x), dst, 0x0F, 0x7E)
}

// Movsx8 is movsx r64, r8 for the low byte of one of the first four registers.
func (a *Asm) Movsx8(r Reg) { a.rr(true, r, r, 0x0F, 0xBE) }

// Movzx8 is movzx r32, r8 for the low byte of one of the first four registers.
func (a *Asm) Movzx8(r Reg) { a.rr(false, r, r, 0x0F, 0xB6) }

// Movsx16 is movsx r64, r16.
func (a *Asm) Movsx16(r Reg) { a.rr(true, r, r, 0x0F, 0xBF) }

// Movzx16 is movzx r32, r16.
func (a *Asm) Movzx16(r Reg) { a.rr(false, r, r, 0x0F, 0xB7) }

// Movsx32 is movsxd r64, r32.
func (a *Asm) Movsx32(r Reg) { a.rr(true, r, r, 0x63) }

// Load16 is movzx r32, m16.
func (a *Asm) Load16(dst Reg, m Mem) { a.op(false, uint8(dst), m, 0, 0x0F, 0xB7) }

// Load8 is movzx r32, m8.
func (a *Asm) Load8(dst Reg, m Mem) { a.op(false, uint8(dst), m, 0, 0x0F, 0xB6) }

// Store16 is mov m16, r16.
func (a *Asm) Store16(m Mem, r Reg) { a.Raw(0x66); a.op(false, uint8(r), m, 0, 0x89) }

// CmpImm8 is cmp r8, imm8.
func (a *Asm) CmpImm8(r Reg, v uint8) {
	switch {
	case r >= 8:
		a.Raw(0x41)
	case r >= RSP: // else these were ah to bh
		a.Raw(0x40)
	}
	a.Raw(0x80, 0xF8|byte(r&7), v)
}

// CmpImm16 is cmp r16, imm16.
func (a *Asm) CmpImm16(r Reg, v uint16) {
	a.Raw(0x66)
	a.rr(false, 7, r, 0x81)
	a.Raw(byte(v), byte(v>>8))
}

// CmpImm64 is cmp r64, imm32 sign-extended.
func (a *Asm) CmpImm64(r Reg, v int32) {
	a.rr(true, 7, r, 0x81)
	a.imm32(uint32(v))
}

// CmpLabel is cmp r64, m64 for the eight bytes at a label.
func (a *Asm) CmpLabel(r Reg, l Label) {
	a.Raw(0x48|byte(r>>3)<<2, 0x3B, byte(r&7)<<3|5)
	a.fixups = append(a.fixups, asmFixup{a.Len(), l})
	a.imm32(0)
}

// RepStos64 is rep stosq: RCX times 8 bytes of RAX from RDI on.
func (a *Asm) RepStos64() { a.Raw(0xF3, 0x48, 0xAB) }

// Pushf is pushfq.
func (a *Asm) Pushf() { a.Raw(0x9C) }
