package perf

// Registers that are sampled: x0 to x30, the stack pointer and the instruction pointer, by their numbers in
// arch/arm64/include/uapi/asm/perf_regs.h.
const (
	registerMask  = 1<<33 - 1
	RegisterCount = 33
)

// Registers' places in Record.Regs: in the order of their numbers.
const (
	SP = 31
	IP = 32
)

// ByDWARF are the places of the general registers in Record.Regs, by their DWARF numbers (DWARF for the Arm 64-bit Architecture, §4.1).
func ByDWARF() []int {
	all := make([]int, SP+1)
	for k := range all {
		all[k] = k
	}
	return all
}
