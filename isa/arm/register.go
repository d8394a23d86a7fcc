package arm

import "github.com/callreel/callreel/isa"

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

var names = isa.Names{
	Count: 328,
	Banks: []isa.Bank{
		{First: 0, Last: 12, Name: "r"}, {First: 13, Last: 13, Name: "sp"}, {First: 14, Last: 14, Name: "lr"}, {First: 15, Last: 15, Name: "pc"},
		{First: 64, Last: 95, Name: "s"}, {First: 96, Last: 103, Name: "f"}, {First: 104, Last: 111, Name: "wcgr"}, {First: 112, Last: 127, Name: "wr"},
		{First: 128, Last: 128, Name: "spsr"}, {First: 129, Last: 129, Name: "spsr_fiq"}, {First: 130, Last: 130, Name: "spsr_irq"}, {First: 131, Last: 131, Name: "spsr_abt"},
		{First: 132, Last: 132, Name: "spsr_und"}, {First: 133, Last: 133, Name: "spsr_svc"}, {First: 143, Last: 143, Name: "ra_auth_code"},
		{First: 192, Last: 199, Name: "wc"}, {First: 256, Last: 287, Name: "d"}, {First: 320, Last: 320, Name: "tpidruro"}, {First: 321, Last: 321, Name: "tpidrurw"},
		{First: 322, Last: 322, Name: "tpidpr"}, {First: 323, Last: 323, Name: "htpidpr"},
	},
	Aliases: []isa.Alias{{Name: "fp", Number: R11}, {Name: "ra", Number: LR}, {Name: "ip", Number: 12}},
}

// DWARFName returns the lower-case name of DWARF register n, "dwarf" and the number where the ABI has none.
func DWARFName(n int) string { return names.Name(n) }

// DWARFNumber returns the DWARF number of a register by one of its lower-case names.
func DWARFNumber(name string) (int, bool) { return names.Number(name) }
