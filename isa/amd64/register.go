package amd64

import "strconv"

// Reg is a 64-bit general register, numbered as instructions number it (Intel SDM vol. 2 §2.2.1.7, table 2-2).
// A Reg can index a 16-bit register mask: see [Reg.Mask].
type Reg uint8

// The general registers. The order is the hardware's, not DWARF's.
const (
	RAX Reg = iota
	RCX
	RDX
	RBX
	RSP
	RBP
	RSI
	RDI
	R8
	R9
	R10
	R11
	R12
	R13
	R14
	R15
)

// Values of [Inst.Base] and [Inst.Index] beside those of Reg.
const (
	NoReg int8 = -1 // there is no such register in the address
	RIP   int8 = 16 // the address is relative to the next instruction
)

var regNames = [16]string{
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
}

// String returns the register's name in lower case, or "reg(n)" for a number above R15.
func (r Reg) String() string {
	if int(r) < len(regNames) {
		return regNames[r]
	}
	return "reg(" + strconv.Itoa(int(r)) + ")"
}

// Mask returns the register's bit in the masks of [Inst.GPRRead] and [Inst.GPRWritten]; zero above R15.
func (r Reg) Mask() uint16 {
	if r > R15 {
		return 0
	}
	return 1 << r
}

// DWARF register numbers that stand for no general register (System V AMD64 ABI §3.6.2, figure 3.36).
const (
	DWARFReturnAddress = 16 // the column of the return address
	DWARFRFlags        = 49
	DWARFFSBase        = 58
	DWARFGSBase        = 59
)

// dwarfOf gives the DWARF number of each register: the first eight are in an order of their own.
var dwarfOf = [16]uint8{0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}

// DWARF returns the register's DWARF number, 0 to 15 (System V AMD64 ABI figure 3.36), or -1 for a number above R15.
func (r Reg) DWARF() int {
	if r > R15 {
		return -1
	}
	return int(dwarfOf[r])
}

// RegFromDWARF returns the general register with DWARF number n. It reports false when n stands for something else,
// the return address column (16) included.
func RegFromDWARF(n int) (Reg, bool) {
	if n < 0 || n > 15 {
		return 0, false
	}
	// The permutation is its own inverse but for rsi, rbp, rdi and rsp, so it is searched where it is not the identity.
	if n >= 8 {
		return Reg(n), true
	}
	for r := RAX; r < R8; r++ {
		if int(dwarfOf[r]) == n {
			return r, true
		}
	}
	return 0, false
}

// dwarfBank is a run of DWARF numbers whose names are a prefix and a counter.
type dwarfBank struct {
	first, last int
	prefix      string
	start       int // the counter at first
}

var dwarfBanks = [...]dwarfBank{
	{17, 32, "xmm", 0},
	{33, 40, "st", 0},
	{41, 48, "mm", 0},
	{67, 82, "xmm", 16},
	{118, 125, "k", 0},
	{126, 129, "bnd", 0},
}

// DWARFName returns the lower-case name of DWARF register n (System V AMD64 ABI figure 3.36): "rax", "ra" for the
// return address column, "xmm0", "st0", "rflags", "fs.base" and so on. A number that the ABI leaves open gives
// "dwarf" and the number, so that the name is never empty.
func DWARFName(n int) string {
	if r, ok := RegFromDWARF(n); ok {
		return r.String()
	}
	switch n {
	case DWARFReturnAddress:
		return "ra"
	case DWARFRFlags:
		return "rflags"
	case 50:
		return "es"
	case 51:
		return "cs"
	case 52:
		return "ss"
	case 53:
		return "ds"
	case 54:
		return "fs"
	case 55:
		return "gs"
	case DWARFFSBase:
		return "fs.base"
	case DWARFGSBase:
		return "gs.base"
	case 62:
		return "tr"
	case 63:
		return "ldtr"
	case 64:
		return "mxcsr"
	case 65:
		return "fcw"
	case 66:
		return "fsw"
	}
	for _, b := range dwarfBanks {
		if n >= b.first && n <= b.last {
			return b.prefix + strconv.Itoa(n-b.first+b.start)
		}
	}
	return "dwarf" + strconv.Itoa(n)
}
