package arm64

import "strconv"

// The DWARF numbers that unwinders act on (DWARF for the Arm 64-bit Architecture §4.1).
const (
	X0          = 0
	X19         = 19
	X20         = 20
	X28         = 28
	FP          = 29
	LR          = 30
	SP          = 31
	PC          = 32
	RASignState = 34 // 1 where the return address is signed
	V0          = 64 // D0 is its low half
	V8          = 72
)

const maxDWARF = 128 // one more than the highest number with a name

var banks = [...]bank{
	{0, 30, "x", 0}, {31, 31, "sp", 0}, {32, 32, "pc", 0}, {33, 33, "elr_mode", 0}, {34, 34, "ra_sign_state", 0},
	{35, 35, "tpidrro_el0", 0}, {36, 36, "tpidr_el0", 0}, {37, 37, "tpidr_el1", 0}, {38, 38, "tpidr_el2", 0},
	{39, 39, "tpidr_el3", 0}, {46, 46, "vg", 0}, {47, 47, "ffr", 0},
	{48, 63, "p", 0}, {64, 95, "v", 0}, {96, 127, "z", 0},
}

var aliases = [...]alias{{"fp", FP}, {"lr", LR}, {"ra", LR}}

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
