package arm64

import (
	"fmt"

	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
)

// kind is what of an instruction matters to where it can run.
type kind uint8

const (
	plain kind = iota // runs anywhere
	jump              // b
	call_             // bl
	condJump
	ret
	indirectJump
	indirectCall
	address // adr, adrp
	literal // ldr, ldrsw or prfm, relative to PC
)

// kindOf classifies an instruction (Arm ARM C4.1).
func kindOf(w uint32) kind {
	switch {
	case w&0xFC000000 == 0x14000000:
		return jump
	case w&0xFC000000 == 0x94000000:
		return call_
	case w&0xFF000000 == 0x54000000, w&0x7E000000 == 0x34000000, w&0x7E000000 == 0x36000000: // b.cond, cbz, tbz
		return condJump
	case w&0xFE000000 == 0xD6000000 && w>>21&7 == 0, w&0xFFE00000 == 0xD7000000:
		return indirectJump
	case w&0xFEE00000 == 0xD6200000:
		return indirectCall
	case w&0xFFE00000 == 0xD6400000:
		return ret
	case w&0x1F000000 == 0x10000000:
		return address
	case w&0x3B000000 == 0x18000000:
		return literal
	}
	return plain
}

// signed is n bits of a word from bit low on, as a signed number.
func signed(w uint32, low, n int) int64 { return int64(int32(w<<(32-low-n)) >> (32 - n)) }

// targetOf is the address that a PC-relative instruction at pc names.
func targetOf(w uint32, pc uint64) uint64 {
	switch kindOf(w) {
	case jump, call_:
		return pc + uint64(4*signed(w, 0, 26))
	case condJump:
		if w&0x7E000000 == 0x36000000 {
			return pc + uint64(4*signed(w, 5, 14))
		}
		return pc + uint64(4*signed(w, 5, 19))
	case literal:
		return pc + uint64(4*signed(w, 5, 19))
	case address:
		d := signed(w, 5, 19)<<2 | int64(w>>29&3)
		if w>>31 != 0 {
			return pc&^0xFFF + uint64(d<<12)
		}
		return pc + uint64(d)
	}
	return 0
}

// ends says whether nothing runs behind an instruction.
func ends(w uint32) bool {
	switch kindOf(w) {
	case jump, ret, indirectJump:
		return true
	}
	return false
}

// condTo appends a conditional jump to a label: the same, with another distance.
func (c *coder) condTo(w uint32, l arm64.Label) {
	if w&0x7E000000 == 0x36000000 {
		t, bit := isa.Reg(w&31), uint8(w>>31<<5|w>>19&31)
		if w>>24&1 == 0 {
			c.Tbz(t, bit, l)
		} else {
			c.Tbnz(t, bit, l)
		}
		return
	}
	c.CondJump(w, l)
}

// addressOf appends the loading of an address into a register, for an instruction that stands at pc in the program. How many instructions
// it takes doesn't depend on where the arena is, which is within 128 MiB of that.
func (c *coder) addressOf(r isa.Reg, addr, pc uint64) {
	const near = 1<<32 - 1<<28
	if d := int64(addr - pc); d > -near && d < near {
		c.AdrpTo(r, addr)
		c.AddImm(r, r, int64(addr&0xFFF))
		return
	}
	c.Movz(r, uint16(addr), 0)
	for shift := uint8(16); shift < 64; shift += 16 {
		c.Movk(r, uint16(addr>>shift), shift)
	}
}

// copy appends an instruction that stands at pc in the program, so that it does the same here. It is no jump.
//
// What a load relative to PC loads is found by its address: in the register itself, or in x16, which is kept if alive says so.
func (c *coder) copy(w uint32, pc uint64, alive bool) error {
	to := targetOf(w, pc)
	r := isa.Reg(w & 31)
	switch kindOf(w) {
	case plain, ret:
		c.Word(w)
	case address:
		if r != zr {
			c.addressOf(r, to, pc)
		} else {
			c.Nop()
		}
	case literal:
		c.copyLiteral(w, pc, alive)
	case call_: // it comes back to the program, not to here
		c.addressOf(lr, pc+4, pc)
		c.BTo(to)
	case indirectCall:
		if n := isa.Reg(w >> 5 & 31); n == lr {
			if w&0x01000C00 != 0 {
				return fmt.Errorf("instruction at %#x calls by a signed link register", pc)
			}
			c.Mov(x16, lr)
			w = w&^(31<<5) | uint32(x16)<<5
		} else if w&0x01000000 != 0 && r == lr {
			return fmt.Errorf("instruction at %#x calls by what the link register signs", pc)
		}
		c.addressOf(lr, pc+4, pc)
		c.Word(w &^ (1 << 21)) // the jump
	default:
		return fmt.Errorf("jump at %#x", pc)
	}
	return nil
}

// copyLiteral appends a load from an address.
func (c *coder) copyLiteral(w uint32, pc uint64, alive bool) {
	r, opc, vector := isa.Reg(w&31), w>>30, w>>26&1 != 0
	if !vector && (opc == 3 || r == zr) { // prfm, which is a hint, or a load of nothing
		c.Nop()
		return
	}
	base := r
	if vector {
		base = x16
	}
	if alive = alive && vector; alive {
		c.push(x16, x17)
	}
	c.addressOf(base, targetOf(w, pc), pc)
	switch from := arm64.At(base, 0); {
	case vector:
		c.LoadV(4<<opc, r, from)
	case opc == 2:
		c.LoadSigned(4, r, from)
	default:
		c.Load(4<<opc, r, from)
	}
	if alive {
		c.pop(x16, x17)
	}
}
