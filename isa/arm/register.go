package arm

import "strconv"

// The DWARF numbers that unwinders act on (DWARF for the Arm Architecture §4.1).
const (
	R0  = 0
	R4  = 4
	R7  = 7  // Thumb's frame pointer
	R11 = 11 // ARM's frame pointer
	SP  = 13
	LR  = 14
	PC  = 15
	D0  = 256
	D8  = 264
)

const maxDWARF = 328 // one more than the highest number with a name

var banks = [...]bank{
	{0, 12, "r", 0}, {13, 13, "sp", 0}, {14, 14, "lr", 0}, {15, 15, "pc", 0},
	{64, 95, "s", 0}, {96, 103, "f", 0}, {104, 111, "wcgr", 0}, {112, 127, "wr", 0},
	{128, 128, "spsr", 0}, {129, 129, "spsr_fiq", 0}, {130, 130, "spsr_irq", 0}, {131, 131, "spsr_abt", 0},
	{132, 132, "spsr_und", 0}, {133, 133, "spsr_svc", 0}, {143, 143, "ra_auth_code", 0},
	{192, 199, "wc", 0}, {256, 287, "d", 0}, {320, 320, "tpidruro", 0}, {321, 321, "tpidrurw", 0},
	{322, 322, "tpidpr", 0}, {323, 323, "htpidpr", 0},
}

var aliases = [...]alias{{"fp", R11}, {"ra", LR}, {"ip", 12}}

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
