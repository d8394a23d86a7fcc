package cfi

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/isa/arm"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/isa/i386"
	"github.com/callreel/callreel/object"
)

// Registers is what unwinding has to know of an architecture's registers. All
// numbers are DWARF's.
type Registers struct {
	AddrSize int    // bytes, 4 or 8
	SP       uint32 // the stack pointer, whose value in the caller is the CFA
	FP       uint32 // the frame pointer, where there is one
	RA       uint32 // the column of the return address
	PC       uint32 // the program counter; on x86 it has the number of RA

	// CalleeSaved are the general registers that a function hands back unchanged,
	// sorted, the stack pointer left out. A row without a rule for one of them
	// means that it still has its value.
	CalleeSaved []uint32

	Name   NameFunc                         // never gives ""
	Number func(name string) (uint32, bool) // by lower-case name
}

// RegistersOf describes the registers of an architecture; false for one that is not known.
func RegistersOf(arch object.Arch) (Registers, bool) {
	switch arch {
	case object.AMD64: // System V AMD64 ABI §3.2.1
		return Registers{
			AddrSize: 8, SP: 7, FP: 6, RA: amd64.DWARFReturnAddress, PC: amd64.DWARFReturnAddress,
			CalleeSaved: []uint32{3, 6, 12, 13, 14, 15},
			Name:        nameBy(amd64.DWARFName), Number: numberBy(amd64.DWARFNumber),
		}, true
	case object.I386: // System V i386 ABI §2.2.2
		return Registers{
			AddrSize: 4, SP: i386.ESP, FP: i386.EBP, RA: i386.EIP, PC: i386.EIP,
			CalleeSaved: []uint32{i386.EBX, i386.EBP, i386.ESI, i386.EDI},
			Name:        nameBy(i386.DWARFName), Number: numberBy(i386.DWARFNumber),
		}, true
	case object.ARM64: // Procedure Call Standard for the Arm 64-bit Architecture §6.1.1
		return Registers{
			AddrSize: 8, SP: arm64.SP, FP: arm64.FP, RA: arm64.LR, PC: arm64.PC,
			CalleeSaved: []uint32{19, 20, 21, 22, 23, 24, 25, 26, 27, 28, arm64.FP},
			Name:        nameBy(arm64.DWARFName), Number: numberBy(arm64.DWARFNumber),
		}, true
	case object.ARM: // Procedure Call Standard for the Arm Architecture §6.1.1
		return Registers{
			AddrSize: 4, SP: arm.SP, FP: arm.R11, RA: arm.LR, PC: arm.PC,
			CalleeSaved: []uint32{4, 5, 6, 7, 8, 9, 10, 11},
			Name:        nameBy(arm.DWARFName), Number: numberBy(arm.DWARFNumber),
		}, true
	}
	return Registers{}, false
}

func nameBy(name func(int) string) NameFunc {
	return func(reg uint32) string { return name(int(reg)) }
}

func numberBy(number func(string) (int, bool)) func(string) (uint32, bool) {
	return func(name string) (uint32, bool) {
		n, ok := number(name)
		return uint32(n), ok
	}
}
