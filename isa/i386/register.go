package i386

import "github.com/callreel/callreel/isa"

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

var names = isa.Names{
	Count: 96,
	Banks: []isa.Bank{
		{First: 0, Last: 0, Name: "eax"}, {First: 1, Last: 1, Name: "ecx"}, {First: 2, Last: 2, Name: "edx"}, {First: 3, Last: 3, Name: "ebx"},
		{First: 4, Last: 4, Name: "esp"}, {First: 5, Last: 5, Name: "ebp"}, {First: 6, Last: 6, Name: "esi"}, {First: 7, Last: 7, Name: "edi"},
		{First: 8, Last: 8, Name: "eip"}, {First: 9, Last: 9, Name: "eflags"},
		{First: 11, Last: 18, Name: "st"}, {First: 21, Last: 28, Name: "xmm"}, {First: 29, Last: 36, Name: "mm"},
		{First: 37, Last: 37, Name: "fcw"}, {First: 38, Last: 38, Name: "fsw"}, {First: 39, Last: 39, Name: "mxcsr"},
		{First: 40, Last: 40, Name: "es"}, {First: 41, Last: 41, Name: "cs"}, {First: 42, Last: 42, Name: "ss"}, {First: 43, Last: 43, Name: "ds"}, {First: 44, Last: 44, Name: "fs"}, {First: 45, Last: 45, Name: "gs"},
		{First: 48, Last: 48, Name: "tr"}, {First: 49, Last: 49, Name: "ldtr"}, {First: 93, Last: 93, Name: "fs.base"}, {First: 94, Last: 94, Name: "gs.base"},
	},
	Aliases: []isa.Alias{{Name: "ra", Number: EIP}},
}

// DWARFName returns the lower-case name of DWARF register n, "dwarf" and the number where the ABI has none.
func DWARFName(n int) string { return names.Name(n) }

// DWARFNumber returns the DWARF number of a register by one of its lower-case names.
func DWARFNumber(name string) (int, bool) { return names.Number(name) }
