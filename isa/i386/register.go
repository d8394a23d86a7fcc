package i386

import "strconv"

// The DWARF numbers that unwinders act on (System V i386 ABI §2.5, table 2.14). Apple exchanges ESP and EBP in
// __eh_frame of i386; that is not followed here.
const (
	EAX = 0
	EBX = 3
	ESP = 4
	EBP = 5
	ESI = 6
	EDI = 7
	EIP = 8 // the column of the return address
)

const maxDWARF = 96 // one more than the highest number with a name

var banks = [...]bank{
	{0, 0, "eax", 0}, {1, 1, "ecx", 0}, {2, 2, "edx", 0}, {3, 3, "ebx", 0},
	{4, 4, "esp", 0}, {5, 5, "ebp", 0}, {6, 6, "esi", 0}, {7, 7, "edi", 0},
	{8, 8, "eip", 0}, {9, 9, "eflags", 0},
	{11, 18, "st", 0}, {21, 28, "xmm", 0}, {29, 36, "mm", 0},
	{37, 37, "fcw", 0}, {38, 38, "fsw", 0}, {39, 39, "mxcsr", 0},
	{40, 40, "es", 0}, {41, 41, "cs", 0}, {42, 42, "ss", 0}, {43, 43, "ds", 0}, {44, 44, "fs", 0}, {45, 45, "gs", 0},
	{48, 48, "tr", 0}, {49, 49, "ldtr", 0}, {93, 93, "fs.base", 0}, {94, 94, "gs.base", 0},
}

var aliases = [...]alias{{"ra", EIP}}

// DWARFName returns the lower-case name of DWARF register n. A number that the ABI leaves open gives "dwarf" and the
// number, so that the name is never empty.
func DWARFName(n int) string {
	for _, b := range banks {
		if n < b.first || n > b.last {
			continue
		}
		if b.first == b.last {
			return b.name
		}
		return b.name + strconv.Itoa(n-b.first+b.start)
	}
	return "dwarf" + strconv.Itoa(n)
}

// DWARFNumber returns the DWARF number of a register by its lower-case name: one that DWARFName gives, or another that
// is in use for it.
func DWARFNumber(name string) (int, bool) {
	for _, a := range aliases {
		if a.name == name {
			return a.number, true
		}
	}
	for n := range maxDWARF {
		if DWARFName(n) == name {
			return n, true
		}
	}
	return 0, false
}

// bank is a run of DWARF numbers whose names are a word and a counter; the word alone where it is one register.
type bank struct {
	first, last int
	name        string
	start       int // the counter at first
}

// alias is another name of a register.
type alias struct {
	name   string
	number int
}
