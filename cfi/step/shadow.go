package step

// registers are the general registers by their DWARF numbers, and the address of the instruction that is next.
type registers struct {
	general [registerCount]uint64
	pc      uint64
}

func (r *registers) sp() uint64 { return r.general[dwarfSP] }

// shadow is the truth about a call.
type shadow struct {
	cfa   uint64
	ra    uint64
	saved [len(calleeSaved)]uint64 // what the callee-saved registers held at the entry
	signing
}

// shadowAt notes a call at its function's entry, which returns to ra and has not signed that.
func shadowAt(r *registers, ra uint64) shadow {
	s := shadow{cfa: r.sp() + entryCFA, ra: ra, signing: signing{}}
	for k, reg := range calleeSaved {
		s.saved[k] = r.general[reg]
	}
	return s
}
