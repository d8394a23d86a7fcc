package amd64

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/callreel/callreel/isa"
)

// Asm appends x86-64 machine code that will run at a known address. It knows just the instructions that stubs
// are made of; each method encodes one of them (Intel SDM vol. 2, chapters 3–5).
//
// Errors (a displacement out of ±2 GiB, an unplaced label, an operand that has no encoding) are kept and given by Finish,
// so that straight-line code stays readable. The zero Asm is not usable: call NewAsm.
type Asm struct {
	isa.Code
	fixups []asmFixup
}

// Label names a place in the code of one Asm.
type Label = isa.Label

type asmFixup struct {
	at    int // offset of the rel32 field
	label Label
}

// Cond is a condition code as the low four bits of Jcc and SETcc encode it (Intel SDM vol. 2 appendix B.1.4.7).
type Cond uint8

// The condition codes that stubs use.
const (
	CondO  Cond = 0x0
	CondB  Cond = 0x2
	CondAE Cond = 0x3
	CondE  Cond = 0x4
	CondNE Cond = 0x5
	CondBE Cond = 0x6
	CondA  Cond = 0x7
	CondS  Cond = 0x8
	CondNS Cond = 0x9
	CondL  Cond = 0xC
	CondGE Cond = 0xD
	CondLE Cond = 0xE
	CondG  Cond = 0xF
)

// Mem is a memory operand: [Base + Index*Scale + Disp], or an absolute address reached RIP-relatively.
type Mem struct {
	Base  Reg
	Index Reg
	Scale uint8 // 0 for no index, else 1, 2, 4 or 8
	Disp  int32
	Addr  uint64 // the address, when RIP is set
	RIP   bool
	FS    bool // an absolute displacement in the FS segment; Base and Index are not used
}

// At is [base+disp].
func At(base Reg, disp int32) Mem { return Mem{Base: base, Disp: disp} }

// AtIndex is [base+index*scale+disp].
func AtIndex(base, index Reg, scale uint8, disp int32) Mem {
	return Mem{Base: base, Index: index, Scale: scale, Disp: disp}
}

// AtAddr is the RIP-relative operand for an absolute address.
func AtAddr(addr uint64) Mem { return Mem{RIP: true, Addr: addr} }

// AtFS is fs:[disp].
func AtFS(disp int32) Mem { return Mem{FS: true, Disp: disp} }

// ErrAsmRange is in the chain of Finish's error when a target or an operand is out of reach of 32 bits.
var ErrAsmRange = errors.New("out of reach of a 32-bit displacement")

// NewAsm returns an assembler for code that will stand at base. It appends to buf, whose length must be 0.
func NewAsm(base uint64, buf []byte) *Asm {
	a := new(Asm)
	a.Start(base, buf)
	return a
}

// Finish resolves labels and returns the code.
func (a *Asm) Finish() ([]byte, error) {
	a.Resolve()
	return a.Made()
}

// Resolve resolves all labels so far and forgets them: they must have been placed, and are not to be used any more.
func (a *Asm) Resolve() {
	for _, f := range a.fixups {
		to, ok := a.Find(f.label, f.at)
		if !ok {
			break
		}
		binary.LittleEndian.PutUint32(a.Since(f.at), uint32(int32(to-(f.at+4))))
	}
	a.fixups = a.fixups[:0]
	a.Forget()
}

// Align fills with int3 up to a multiple of n, a power of two.
func (a *Asm) Align(n uint64) {
	for a.PC()&(n-1) != 0 {
		a.Raw(0xCC)
	}
}

func (a *Asm) imm32(v uint32) { a.Put32(v) }

// rel32 appends the displacement from the end of an instruction (tail bytes of immediate follow the field) to addr.
func (a *Asm) rel32(addr uint64, tail int) {
	d := int64(addr) - int64(a.PC()+4+uint64(tail))
	if d < math.MinInt32 || d > math.MaxInt32 {
		a.Fail(fmt.Errorf("amd64: from %#x to %#x: %w", a.PC(), addr, ErrAsmRange))
		d = 0
	}
	a.imm32(uint32(int32(d)))
}

// modrm appends the ModRM byte, SIB and displacement of a memory operand. tail is the size of an immediate that follows.
func (a *Asm) modrm(reg uint8, m Mem, tail int) {
	reg = reg & 7 << 3
	switch {
	case m.RIP:
		a.Raw(reg | 5)
		a.rel32(m.Addr, tail)
		return
	case m.FS:
		a.Raw(reg|4, 0x25) // no base, no index, disp32
		a.imm32(uint32(m.Disp))
		return
	}
	mod := byte(0x80)
	short := m.Disp >= -128 && m.Disp <= 127
	switch {
	case m.Disp == 0 && m.Base&7 != RBP: // rbp and r13 have no form without displacement
		mod = 0
	case short:
		mod = 0x40
	}
	if m.Scale != 0 || m.Base&7 == RSP { // rsp and r12 as a base need a SIB byte
		a.Raw(mod|reg|4, a.sib(m))
	} else {
		a.Raw(mod | reg | byte(m.Base&7))
	}
	switch mod {
	case 0x40:
		a.Raw(byte(m.Disp))
	case 0x80:
		a.imm32(uint32(m.Disp))
	}
}

// sib is the SIB byte of an operand with an index, or with a base that has no form without one.
func (a *Asm) sib(m Mem) byte {
	base := byte(m.Base & 7)
	switch {
	case m.Scale == 0:
		return 4<<3 | base
	case m.Index == RSP: // its number stands for no index
		a.Fail(fmt.Errorf("amd64: at %#x: rsp can't be an index", a.PC()))
	case m.Scale != 1 && m.Scale != 2 && m.Scale != 4 && m.Scale != 8:
		a.Fail(fmt.Errorf("amd64: at %#x: an index can't be scaled by %d", a.PC(), m.Scale))
	}
	return byte(bits.TrailingZeros8(m.Scale))<<6 | byte(m.Index&7)<<3 | base
}

// op appends prefixes, opcode and memory operand of an instruction with a register and a memory operand.
func (a *Asm) op(wide bool, reg uint8, m Mem, tail int, opcode ...byte) {
	if m.FS {
		a.Raw(0x64)
	}
	rex := byte(0)
	if wide {
		rex |= 0x48
	}
	if reg >= 8 {
		rex |= 0x44
	}
	if !m.RIP && !m.FS {
		if m.Base >= 8 {
			rex |= 0x41
		}
		if m.Scale != 0 && m.Index >= 8 {
			rex |= 0x42
		}
	}
	if rex != 0 {
		a.Raw(rex)
	}
	a.Raw(opcode...)
	a.modrm(reg, m, tail)
}

// rr appends a register-to-register instruction: reg is the ModRM reg field, rm the r/m field.
func (a *Asm) rr(wide bool, reg, rm Reg, opcode ...byte) {
	rex := byte(0)
	if wide {
		rex |= 0x48
	}
	if reg >= 8 {
		rex |= 0x44
	}
	if rm >= 8 {
		rex |= 0x41
	}
	if rex != 0 {
		a.Raw(rex)
	}
	a.Raw(opcode...)
	a.Raw(0xC0 | byte(reg&7)<<3 | byte(rm&7))
}
