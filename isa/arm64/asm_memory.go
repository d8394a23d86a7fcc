package arm64

import (
	"math/bits"

	"github.com/callreel/callreel/isa"
)

// Extend is how an index, or an addend, is made 64 bits.
type Extend uint8

// The extensions that stubs use.
const (
	UXTW Extend = 2 // of 32 bits, by zeros
	LSL  Extend = 3 // none, as UXTX
	SXTW Extend = 6 // of 32 bits, by the sign
)

// memMode is what a memory operand does to its base.
type memMode uint8

const (
	memOffset memMode = iota
	memPre
	memPost
	memIndex
)

// Mem is a memory operand. Its base may be register 31, which is SP.
type Mem struct {
	base, index isa.Reg
	disp        int32
	mode        memMode
	extend      Extend
	scaled      bool
}

// At is [xbase, #disp].
func At(base isa.Reg, disp int32) Mem { return Mem{base: base, disp: disp} }

// Pre is [xbase, #disp]!: the base becomes the address.
func Pre(base isa.Reg, disp int32) Mem { return Mem{base: base, disp: disp, mode: memPre} }

// Post is [xbase], #disp: the base moves behind the access.
func Post(base isa.Reg, disp int32) Mem { return Mem{base: base, disp: disp, mode: memPost} }

// AtIndex is [xbase, xindex or windex, extended], with scaled shifted by the size of what is there.
func AtIndex(base, index isa.Reg, e Extend, scaled bool) Mem {
	return Mem{base: base, index: index, extend: e, scaled: scaled, mode: memIndex}
}

// scale is the logarithm of a size in bytes: 1, 2, 4, 8 or, of a vector register, 16.
func (a *Asm) scale(size, most int) uint32 {
	if size < 1 || size > most || size&(size-1) != 0 {
		a.refuse("a size of", size)
		return 0
	}
	return uint32(bits.TrailingZeros(uint(size)))
}

// memory appends a load or store of 1<<scale bytes. word has what is common to all forms of it: size, V and opc.
func (a *Asm) memory(word uint32, scale uint32, t isa.Reg, m Mem) {
	word |= rn(m.base) | rd(t)
	unscaled := uint32(m.disp) & 0x1FF << 12
	fits := m.disp >= -256 && m.disp <= 255
	switch {
	case m.mode == memIndex:
		s := uint32(0)
		if m.scaled {
			s = 1
		}
		a.Word(word | 0x38200800 | rm(m.index) | uint32(m.extend)<<13 | s<<12)
	case m.mode == memPre && fits:
		a.Word(word | 0x38000C00 | unscaled)
	case m.mode == memPost && fits:
		a.Word(word | 0x38000400 | unscaled)
	case m.mode == memOffset && m.disp >= 0 && m.disp&(1<<scale-1) == 0 && m.disp>>scale < 1<<12:
		a.Word(word | 0x39000000 | uint32(m.disp)>>scale<<10)
	case m.mode == memOffset && fits:
		a.Word(word | 0x38000000 | unscaled)
	default:
		a.refuse("a displacement of", m.disp)
	}
}

// Load loads size bytes: 1, 2, 4 or 8. The rest of the register becomes zero.
func (a *Asm) Load(size int, t isa.Reg, m Mem) {
	s := a.scale(size, 8)
	a.memory(s<<30|1<<22, s, t, m)
}

// LoadSigned loads size bytes, 1, 2 or 4, and extends them to 64 bits by their sign.
func (a *Asm) LoadSigned(size int, t isa.Reg, m Mem) {
	s := a.scale(size, 4)
	a.memory(s<<30|2<<22, s, t, m)
}

// Store stores size bytes: 1, 2, 4 or 8.
func (a *Asm) Store(size int, t isa.Reg, m Mem) {
	s := a.scale(size, 8)
	a.memory(s<<30, s, t, m)
}

// vectorSize is size and opc of a vector register's access.
func vectorSize(s, opc uint32) uint32 {
	if s == 4 {
		return 1<<26 | (opc|2)<<22
	}
	return 1<<26 | s<<30 | opc<<22
}

// LoadV loads size bytes, 1 to 16, of a vector register; the rest becomes zero.
func (a *Asm) LoadV(size int, t isa.Reg, m Mem) {
	s := a.scale(size, 16)
	a.memory(vectorSize(s, 1), s, t, m)
}

// StoreV stores the low size bytes, 1 to 16, of a vector register.
func (a *Asm) StoreV(size int, t isa.Reg, m Mem) {
	s := a.scale(size, 16)
	a.memory(vectorSize(s, 0), s, t, m)
}

// pair appends a load or store of two registers, by the form with an offset.
func (a *Asm) pair(word uint32, scale uint8, t, u isa.Reg, m Mem) {
	n := m.disp >> scale
	if m.disp&(1<<scale-1) != 0 || n < -64 || n > 63 {
		a.refuse("a displacement of", m.disp)
	}
	switch m.mode {
	case memPre:
		word |= 1 << 23
	case memPost:
		word = word ^ 1<<24 | 1<<23
	case memIndex:
		a.refuse("an index of", m.index)
	}
	a.Word(word | uint32(n)&0x7F<<15 | rt2(u) | rn(m.base) | rd(t))
}

// LoadPair is ldp xt, xu.
func (a *Asm) LoadPair(t, u isa.Reg, m Mem) { a.pair(0xA9400000, 3, t, u, m) }

// StorePair is stp xt, xu.
func (a *Asm) StorePair(t, u isa.Reg, m Mem) { a.pair(0xA9000000, 3, t, u, m) }

// LoadPairW is ldp wt, wu.
func (a *Asm) LoadPairW(t, u isa.Reg, m Mem) { a.pair(0x29400000, 2, t, u, m) }

// StorePairW is stp wt, wu.
func (a *Asm) StorePairW(t, u isa.Reg, m Mem) { a.pair(0x29000000, 2, t, u, m) }

// LoadPairQ is ldp qt, qu.
func (a *Asm) LoadPairQ(t, u isa.Reg, m Mem) { a.pair(0xAD400000, 4, t, u, m) }

// StorePairQ is stp qt, qu.
func (a *Asm) StorePairQ(t, u isa.Reg, m Mem) { a.pair(0xAD000000, 4, t, u, m) }

// LoadLiteral is ldr xt from an address within ±1 MiB, a multiple of 4.
func (a *Asm) LoadLiteral(t isa.Reg, addr uint64) { a.to(0x58000000|rd(t), reach19, addr) }

// LoadLiteralAt is ldr xt from a label.
func (a *Asm) LoadLiteralAt(t isa.Reg, l Label) { a.toLabel(0x58000000|rd(t), reach19, l) }

// LoadLiteralW is ldr wt from an address within ±1 MiB.
func (a *Asm) LoadLiteralW(t isa.Reg, addr uint64) { a.to(0x18000000|rd(t), reach19, addr) }

// LoadLiteralWAt is ldr wt from a label.
func (a *Asm) LoadLiteralWAt(t isa.Reg, l Label) { a.toLabel(0x18000000|rd(t), reach19, l) }

// LoadAcquire is ldar, ldarb or ldarh of size bytes at [xn].
func (a *Asm) LoadAcquire(size int, t, n isa.Reg) {
	a.Word(0x08DFFC00 | a.scale(size, 8)<<30 | rn(n) | rd(t))
}

// StoreRelease is stlr, stlrb or stlrh of size bytes at [xn].
func (a *Asm) StoreRelease(size int, t, n isa.Reg) {
	a.Word(0x089FFC00 | a.scale(size, 8)<<30 | rn(n) | rd(t))
}

// LoadExclusive is ldxr, or ldaxr with acquire, of size bytes at [xn].
func (a *Asm) LoadExclusive(size int, t, n isa.Reg, acquire bool) {
	a.Word(0x085F7C00 | a.scale(size, 8)<<30 | bit(acquire, 15) | rn(n) | rd(t))
}

// StoreExclusive is stxr, or stlxr with release: ws becomes 0 if the store was made, else 1. ws must differ from xt and xn.
func (a *Asm) StoreExclusive(size int, s, t, n isa.Reg, release bool) {
	if s == t || s == n && n != 31 {
		a.refuse("a status in register", s)
	}
	a.Word(0x08007C00 | a.scale(size, 8)<<30 | rm(s) | bit(release, 15) | rn(n) | rd(t))
}

// Order is what an atomic operation orders besides itself.
type Order struct{ Acquire, Release bool }

func bit(b bool, at uint8) uint32 {
	if b {
		return 1 << at
	}
	return 0
}

func (a *Asm) atomic(word uint32, size int, s, t, n isa.Reg, o Order) {
	a.Word(word | a.scale(size, 8)<<30 | bit(o.Acquire, 23) | bit(o.Release, 22) | rm(s) | rn(n) | rd(t))
}

// LoadAdd is ldadd with its orders: rs is added to what is at [xn], and rt becomes what was there. It takes FEAT_LSE, as those below do.
func (a *Asm) LoadAdd(size int, s, t, n isa.Reg, o Order) { a.atomic(0x38200000, size, s, t, n, o) }

// LoadClear is ldclr: the bits of rs are cleared.
func (a *Asm) LoadClear(size int, s, t, n isa.Reg, o Order) { a.atomic(0x38201000, size, s, t, n, o) }

// LoadSet is ldset: the bits of rs are set.
func (a *Asm) LoadSet(size int, s, t, n isa.Reg, o Order) { a.atomic(0x38203000, size, s, t, n, o) }

// Swap is swp: rs is stored, and rt becomes what was there.
func (a *Asm) Swap(size int, s, t, n isa.Reg, o Order) { a.atomic(0x38208000, size, s, t, n, o) }

// CompareSwap is cas: if rs is what is at [xn], rt is stored; rs becomes what was there.
func (a *Asm) CompareSwap(size int, s, t, n isa.Reg, o Order) {
	a.Word(0x08A07C00 | a.scale(size, 8)<<30 | bit(o.Acquire, 22) | bit(o.Release, 15) | rm(s) | rn(n) | rd(t))
}
