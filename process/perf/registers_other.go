//go:build !arm64

package perf

// Registers that are sampled: the sixteen general ones and the instruction pointer,
// by their numbers in arch/x86/include/uapi/asm/perf_regs.h.
const (
	registerMask  = 1<<9 - 1 | 0xff<<16
	RegisterCount = 17
)

// Registers' places in Record.Regs: in the order of their numbers.
const (
	AX = iota
	BX
	CX
	DX
	SI
	DI
	BP
	SP
	IP
	R8 // and so on to R15
)

// ByDWARF are the places of the general registers in Record.Regs, by their DWARF numbers (System V AMD64 ABI, figure 3.36).
func ByDWARF() []int {
	return []int{AX, DX, CX, BX, SI, DI, BP, SP, R8, R8 + 1, R8 + 2, R8 + 3, R8 + 4, R8 + 5, R8 + 6, R8 + 7}
}
