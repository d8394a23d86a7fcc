package arm64

import "github.com/callreel/callreel/isa"

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

var names = isa.Names{
	Count: 128,
	Banks: []isa.Bank{
		{First: 0, Last: 30, Name: "x"}, {First: 31, Last: 31, Name: "sp"}, {First: 32, Last: 32, Name: "pc"}, {First: 33, Last: 33, Name: "elr_mode"}, {First: 34, Last: 34, Name: "ra_sign_state"},
		{First: 35, Last: 35, Name: "tpidrro_el0"}, {First: 36, Last: 36, Name: "tpidr_el0"}, {First: 37, Last: 37, Name: "tpidr_el1"}, {First: 38, Last: 38, Name: "tpidr_el2"},
		{First: 39, Last: 39, Name: "tpidr_el3"}, {First: 46, Last: 46, Name: "vg"}, {First: 47, Last: 47, Name: "ffr"},
		{First: 48, Last: 63, Name: "p"}, {First: 64, Last: 95, Name: "v"}, {First: 96, Last: 127, Name: "z"},
	},
	Aliases: []isa.Alias{{Name: "fp", Number: FP}, {Name: "lr", Number: LR}, {Name: "ra", Number: LR}},
}

// DWARFName returns the lower-case name of DWARF register n, "dwarf" and the number where the ABI has none.
func DWARFName(n int) string { return names.Name(n) }

// DWARFNumber returns the DWARF number of a register by one of its lower-case names.
func DWARFNumber(name string) (int, bool) { return names.Number(name) }
