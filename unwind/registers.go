package unwind

// maxRegisters bounds the DWARF numbers that Registers holds: AArch64's 31 general
// registers, SP and PC are the most.
const maxRegisters = 33

// Registers are the general registers of one frame by their DWARF numbers, for as
// much as is known of them. PC is apart: DWARF calls it the return address column,
// and not every architecture numbers it.
type Registers struct {
	PC    uint64
	value [maxRegisters]uint64
	known uint64 // bit n: register n
}

// Set gives a register its value. Numbers that no architecture here has are ignored.
func (r *Registers) Set(reg int, v uint64) {
	if reg >= 0 && reg < maxRegisters {
		r.value[reg] = v
		r.known |= 1 << reg
	}
}

// Get returns a register's value, false when it is not known.
func (r *Registers) Get(reg int) (uint64, bool) {
	if reg < 0 || reg >= maxRegisters || r.known>>reg&1 == 0 {
		return 0, false
	}
	return r.value[reg], true
}

// Forget makes a register unknown.
func (r *Registers) Forget(reg int) {
	if reg >= 0 && reg < maxRegisters {
		r.known &^= 1 << reg
	}
}

// keepOnly forgets all registers that are not in the mask.
func (r *Registers) keepOnly(mask uint64) { r.known &= mask }
