package arm64

import (
	"math/bits"

	"github.com/callreel/callreel/isa"
)

// wide is the bit that tells 64-bit forms from 32-bit ones.
const wide = 1 << 31

// Movz is movz xd, #v, lsl #shift: 0, 16, 32 or 48.
func (a *Asm) Movz(d isa.Reg, v uint16, shift uint8) { a.movWide(0xD2800000, d, v, shift) }

// Movn is movn xd, #v, lsl #shift.
func (a *Asm) Movn(d isa.Reg, v uint16, shift uint8) { a.movWide(0x92800000, d, v, shift) }

// Movk is movk xd, #v, lsl #shift.
func (a *Asm) Movk(d isa.Reg, v uint16, shift uint8) { a.movWide(0xF2800000, d, v, shift) }

// MovzW is movz wd, #v, lsl #shift: 0 or 16.
func (a *Asm) MovzW(d isa.Reg, v uint16, shift uint8) { a.movWide(0x52800000, d, v, shift) }

// MovkW is movk wd, #v, lsl #shift.
func (a *Asm) MovkW(d isa.Reg, v uint16, shift uint8) { a.movWide(0x72800000, d, v, shift) }

func (a *Asm) movWide(word uint32, d isa.Reg, v uint16, shift uint8) {
	if shift&15 != 0 || shift > 48 || shift > 16 && word&wide == 0 {
		a.refuse("a shift by", shift)
	}
	a.Word(word | uint32(shift)/16<<21 | uint32(v)<<5 | rd(d))
}

// MovImm puts a number into xd by as few instructions as there are for it: one to four.
func (a *Asm) MovImm(d isa.Reg, v uint64) {
	if _, ok := bitmask(v, true); ok && movParts(v) > 1 && movParts(^v) > 1 {
		a.OrrImm(d, 31, v)
		return
	}
	inverted := movParts(^v) < movParts(v)
	first := true
	for shift := uint8(0); shift < 64; shift += 16 {
		part := uint16(v >> shift)
		switch {
		case !inverted && part == 0, inverted && part == 0xFFFF:
		case first && inverted:
			a.Movn(d, ^part, shift)
			first = false
		case first:
			a.Movz(d, part, shift)
			first = false
		default:
			a.Movk(d, part, shift)
		}
	}
	switch {
	case first && inverted:
		a.Movn(d, 0, 0)
	case first:
		a.Movz(d, 0, 0)
	}
}

// movParts is how many of a number's four parts aren't zero.
func movParts(v uint64) (n int) {
	for ; v != 0; v >>= 16 {
		if v&0xFFFF != 0 {
			n++
		}
	}
	return n
}

// MovImmW puts a number into wd; the upper half becomes zero. It takes one or two instructions.
func (a *Asm) MovImmW(d isa.Reg, v uint32) {
	switch lo, hi := uint16(v), uint16(v>>16); {
	case hi == 0:
		a.MovzW(d, lo, 0)
	case lo == 0:
		a.MovzW(d, hi, 16)
	default:
		a.MovzW(d, lo, 0)
		a.MovkW(d, hi, 16)
	}
}

// Mov is mov xd, xs; register 31 is zero.
func (a *Asm) Mov(d, s isa.Reg) { a.Word(0xAA0003E0 | rm(s) | rd(d)) }

// MovW is mov wd, ws.
func (a *Asm) MovW(d, s isa.Reg) { a.Word(0x2A0003E0 | rm(s) | rd(d)) }

// MovSP is mov xd, xs; register 31 is the stack pointer.
func (a *Asm) MovSP(d, s isa.Reg) { a.AddImm(d, s, 0) }

// addImm appends one of ADD, SUB, ADDS and SUBS with a number; a negative one gives the opposite.
func (a *Asm) addImm(word uint32, d, n isa.Reg, v int64) {
	if v < 0 {
		word, v = word^1<<30, -v
	}
	switch {
	case v >= 0 && v < 1<<12:
		a.Word(word | uint32(v)<<10 | rn(n) | rd(d))
	case v > 0 && v < 1<<24 && v&(1<<12-1) == 0:
		a.Word(word | 1<<22 | uint32(v>>12)<<10 | rn(n) | rd(d))
	default:
		a.refuse("an addition of", v)
	}
}

// AddImm is add xd, xn, #v, or sub for a negative number: below 4096, or a multiple of 4096 below 1<<24. Register 31 is SP. Flags stay.
func (a *Asm) AddImm(d, n isa.Reg, v int64) { a.addImm(0x91000000, d, n, v) }

// AddImmW is add wd, wn, #v.
func (a *Asm) AddImmW(d, n isa.Reg, v int64) { a.addImm(0x11000000, d, n, v) }

// SubImm is sub xd, xn, #v.
func (a *Asm) SubImm(d, n isa.Reg, v int64) { a.addImm(0xD1000000, d, n, v) }

// SubImmW is sub wd, wn, #v.
func (a *Asm) SubImmW(d, n isa.Reg, v int64) { a.addImm(0x51000000, d, n, v) }

// SubsImm is subs xd, xn, #v, or adds for a negative number, which sets the same flags: register 31 is zero as xd and SP as xn.
func (a *Asm) SubsImm(d, n isa.Reg, v int64) { a.addImm(0xF1000000, d, n, v) }

// SubsImmW is subs wd, wn, #v.
func (a *Asm) SubsImmW(d, n isa.Reg, v int64) { a.addImm(0x71000000, d, n, v) }

// CmpImm is cmp xn, #v; register 31 is SP.
func (a *Asm) CmpImm(n isa.Reg, v int64) { a.SubsImm(31, n, v) }

// CmpImmW is cmp wn, #v.
func (a *Asm) CmpImmW(n isa.Reg, v int64) { a.SubsImmW(31, n, v) }

// shifted appends an instruction of three registers, of which the last is shifted left.
func (a *Asm) shifted(word uint32, d, n, m isa.Reg, shift uint8) {
	if shift > 63 || shift > 31 && word&wide == 0 {
		a.refuse("a shift by", shift)
	}
	a.Word(word | rm(m) | uint32(shift)<<10 | rn(n) | rd(d))
}

// Add is add xd, xn, xm; register 31 is zero.
func (a *Asm) Add(d, n, m isa.Reg) { a.shifted(0x8B000000, d, n, m, 0) }

// AddLSL is add xd, xn, xm, lsl #shift.
func (a *Asm) AddLSL(d, n, m isa.Reg, shift uint8) { a.shifted(0x8B000000, d, n, m, shift) }

// AddW is add wd, wn, wm.
func (a *Asm) AddW(d, n, m isa.Reg) { a.shifted(0x0B000000, d, n, m, 0) }

// Sub is sub xd, xn, xm.
func (a *Asm) Sub(d, n, m isa.Reg) { a.shifted(0xCB000000, d, n, m, 0) }

// SubW is sub wd, wn, wm.
func (a *Asm) SubW(d, n, m isa.Reg) { a.shifted(0x4B000000, d, n, m, 0) }

// Subs is subs xd, xn, xm.
func (a *Asm) Subs(d, n, m isa.Reg) { a.shifted(0xEB000000, d, n, m, 0) }

// SubsW is subs wd, wn, wm.
func (a *Asm) SubsW(d, n, m isa.Reg) { a.shifted(0x6B000000, d, n, m, 0) }

// Cmp is cmp xn, xm.
func (a *Asm) Cmp(n, m isa.Reg) { a.Subs(31, n, m) }

// CmpW is cmp wn, wm.
func (a *Asm) CmpW(n, m isa.Reg) { a.SubsW(31, n, m) }

// And is and xd, xn, xm.
func (a *Asm) And(d, n, m isa.Reg) { a.shifted(0x8A000000, d, n, m, 0) }

// Orr is orr xd, xn, xm.
func (a *Asm) Orr(d, n, m isa.Reg) { a.shifted(0xAA000000, d, n, m, 0) }

// OrrLSL is orr xd, xn, xm, lsl #shift.
func (a *Asm) OrrLSL(d, n, m isa.Reg, shift uint8) { a.shifted(0xAA000000, d, n, m, shift) }

// OrrW is orr wd, wn, wm.
func (a *Asm) OrrW(d, n, m isa.Reg) { a.shifted(0x2A000000, d, n, m, 0) }

// Eor is eor xd, xn, xm.
func (a *Asm) Eor(d, n, m isa.Reg) { a.shifted(0xCA000000, d, n, m, 0) }

// EorW is eor wd, wn, wm.
func (a *Asm) EorW(d, n, m isa.Reg) { a.shifted(0x4A000000, d, n, m, 0) }

// Bic is bic xd, xn, xm.
func (a *Asm) Bic(d, n, m isa.Reg) { a.shifted(0x8A200000, d, n, m, 0) }

// addExtended appends an ADD or SUB of which the last register is extended: register 31 is SP as xd and xn.
func (a *Asm) addExtended(word uint32, d, n, m isa.Reg, e Extend, shift uint8) {
	if shift > 4 {
		a.refuse("a shift by", shift)
	}
	a.Word(word | rm(m) | uint32(e)<<13 | uint32(shift)<<10 | rn(n) | rd(d))
}

// AddExt is add xd, xn, xm or wm, extended and then shifted by up to 4; register 31 is SP as xd and xn.
func (a *Asm) AddExt(d, n, m isa.Reg, e Extend, shift uint8) {
	a.addExtended(0x8B200000, d, n, m, e, shift)
}

// SubExt is sub xd, xn, xm or wm, extended and then shifted by up to 4; register 31 is SP as xd and xn.
func (a *Asm) SubExt(d, n, m isa.Reg, e Extend, shift uint8) {
	a.addExtended(0xCB200000, d, n, m, e, shift)
}

// CmpExt is cmp xn, xm or wm, extended; register 31 is SP as xn.
func (a *Asm) CmpExt(n, m isa.Reg, e Extend) { a.addExtended(0xEB200000, 31, n, m, e, 0) }

// bitmask returns the fields N, immr and imms of a number that logical instructions can have (Arm ARM, DecodeBitMasks): a run of ones,
// rotated, in elements of 2 to 64 bits that are all the same.
func bitmask(v uint64, x bool) (fields uint32, ok bool) {
	if !x {
		v = v&0xFFFF_FFFF | v<<32
	}
	if v == 0 || v == ^uint64(0) {
		return 0, false
	}
	size := 64
	for size > 2 && v == bits.RotateLeft64(v, size/2) {
		size /= 2
	}
	element := v & (^uint64(0) >> (64 - size))
	ones := bits.OnesCount64(element)
	// Rotated right by this much the run of ones begins at bit 0.
	rotate := 0
	for ; rotate < size; rotate++ {
		turned := element>>rotate | element<<(size-rotate)
		if turned&(^uint64(0)>>(64-size)) == 1<<ones-1 {
			break
		}
	}
	if rotate == size {
		return 0, false
	}
	immr := uint32(size-rotate) % uint32(size)
	imms := uint32(-size<<1)&0x3F | uint32(ones-1)
	n := uint32(0)
	if size == 64 {
		n, imms = 1, uint32(ones-1)
	}
	return n<<22 | immr<<16 | imms<<10, true
}

func (a *Asm) logicalImm(word uint32, d, n isa.Reg, v uint64) {
	fields, ok := bitmask(v, word&wide != 0)
	if !ok {
		a.refuse("a mask of", v)
	}
	a.Word(word | fields | rn(n) | rd(d))
}

// AndImm is and xd, xn, #v; register 31 is SP as xd. Not every number has an encoding.
func (a *Asm) AndImm(d, n isa.Reg, v uint64) { a.logicalImm(0x92000000, d, n, v) }

// AndImmW is and wd, wn, #v.
func (a *Asm) AndImmW(d, n isa.Reg, v uint32) { a.logicalImm(0x12000000, d, n, uint64(v)) }

// OrrImm is orr xd, xn, #v.
func (a *Asm) OrrImm(d, n isa.Reg, v uint64) { a.logicalImm(0xB2000000, d, n, v) }

// OrrImmW is orr wd, wn, #v.
func (a *Asm) OrrImmW(d, n isa.Reg, v uint32) { a.logicalImm(0x32000000, d, n, uint64(v)) }

// EorImm is eor xd, xn, #v.
func (a *Asm) EorImm(d, n isa.Reg, v uint64) { a.logicalImm(0xD2000000, d, n, v) }

// TstImm is tst xn, #v.
func (a *Asm) TstImm(n isa.Reg, v uint64) { a.logicalImm(0xF2000000, 31, n, v) }

// field appends a bitfield instruction: SBFM, BFM or UBFM, by its 64-bit form.
func (a *Asm) field(word uint32, d, n isa.Reg, immr, imms uint8) {
	if immr > 63 || imms > 63 {
		a.refuse("a field of", [2]uint8{immr, imms})
	}
	a.Word(word | uint32(immr)<<16 | uint32(imms)<<10 | rn(n) | rd(d))
}

const (
	sbfm = 0x93400000
	bfm  = 0xB3400000
	ubfm = 0xD3400000
)

// Ubfx is ubfx xd, xn, #from, #width.
func (a *Asm) Ubfx(d, n isa.Reg, from, width uint8) { a.field(ubfm, d, n, from, from+width-1) }

// Sbfx is sbfx xd, xn, #from, #width.
func (a *Asm) Sbfx(d, n isa.Reg, from, width uint8) { a.field(sbfm, d, n, from, from+width-1) }

// Bfi is bfi xd, xn, #at, #width.
func (a *Asm) Bfi(d, n isa.Reg, at, width uint8) { a.field(bfm, d, n, (64-at)&63, width-1) }

// Bfxil is bfxil xd, xn, #from, #width.
func (a *Asm) Bfxil(d, n isa.Reg, from, width uint8) { a.field(bfm, d, n, from, from+width-1) }

// LslImm is lsl xd, xn, #by.
func (a *Asm) LslImm(d, n isa.Reg, by uint8) { a.field(ubfm, d, n, (64-by)&63, 63-by) }

// LsrImm is lsr xd, xn, #by.
func (a *Asm) LsrImm(d, n isa.Reg, by uint8) { a.field(ubfm, d, n, by, 63) }

// AsrImm is asr xd, xn, #by.
func (a *Asm) AsrImm(d, n isa.Reg, by uint8) { a.field(sbfm, d, n, by, 63) }

// LslImmW is lsl wd, wn, #by.
func (a *Asm) LslImmW(d, n isa.Reg, by uint8) {
	if by > 31 {
		a.refuse("a shift by", by)
	}
	a.field(ubfm&^wide&^(1<<22), d, n, (32-by)&31, (31-by)&31)
}

// three appends an instruction of three registers that are as they are.
func (a *Asm) three(word uint32, d, n, m isa.Reg) { a.Word(word | rm(m) | rn(n) | rd(d)) }

// Lsl is lsl xd, xn, xm.
func (a *Asm) Lsl(d, n, m isa.Reg) { a.three(0x9AC02000, d, n, m) }

// Lsr is lsr xd, xn, xm.
func (a *Asm) Lsr(d, n, m isa.Reg) { a.three(0x9AC02400, d, n, m) }

// Asr is asr xd, xn, xm.
func (a *Asm) Asr(d, n, m isa.Reg) { a.three(0x9AC02800, d, n, m) }

// Udiv is udiv xd, xn, xm; what is divided by zero gives zero.
func (a *Asm) Udiv(d, n, m isa.Reg) { a.three(0x9AC00800, d, n, m) }

// Madd is madd xd, xn, xm, xadd: xadd + xn × xm.
func (a *Asm) Madd(d, n, m, add isa.Reg) { a.three(0x9B000000|rt2(add), d, n, m) }

// Msub is msub xd, xn, xm, xfrom: xfrom − xn × xm.
func (a *Asm) Msub(d, n, m, from isa.Reg) { a.three(0x9B008000|rt2(from), d, n, m) }

// Csel is csel xd, xn, xm, cond.
func (a *Asm) Csel(d, n, m isa.Reg, c Cond) { a.three(0x9A800000|uint32(c&15)<<12, d, n, m) }

// Csinc is csinc xd, xn, xm, cond.
func (a *Asm) Csinc(d, n, m isa.Reg, c Cond) { a.three(0x9A800400|uint32(c&15)<<12, d, n, m) }

// Cset is cset xd, cond.
func (a *Asm) Cset(d isa.Reg, c Cond) { a.Csinc(d, 31, 31, c^1) }
