package step

import "github.com/callreel/callreel/isa/amd64"

// calleeSaved are the DWARF numbers of the registers that calls keep besides the stack pointer (System V AMD64 ABI §3.2.1).
var calleeSaved = [...]uint32{3, 6, 12, 13, 14, 15}

// dwarfRSP is the DWARF number of the stack pointer.
const dwarfRSP = 7

// registers are the general registers by their DWARF numbers, and the address of the instruction that is next.
type registers struct {
	general [16]uint64
	pc      uint64
}

func (r *registers) sp() uint64 { return r.general[dwarfRSP] }

// shadow is the truth about a call.
type shadow struct {
	cfa   uint64
	ra    uint64
	saved [len(calleeSaved)]uint64 // what the callee-saved registers held at the entry
}

// shadowAt notes a call at its function's entry. ra is the word on the top of the stack.
func shadowAt(r *registers, ra uint64) shadow {
	s := shadow{cfa: r.sp() + 8, ra: ra}
	for k, reg := range calleeSaved {
		s.saved[k] = r.general[reg]
	}
	return s
}

// name is a register's name by its DWARF number.
func name(reg uint32) string { return amd64.DWARFName(int(reg)) }
