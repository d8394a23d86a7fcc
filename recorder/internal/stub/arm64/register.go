package arm64

import "github.com/callreel/callreel/isa"

// The registers that stubs name. Number 31 is the stack pointer or zero, as the instruction has it.
const (
	x0 isa.Reg = iota
	x1
	x2
	x3
	x4
	x5
	x6
	x7
	x8
	x9
	x10
	x11
	x12
	x13
	x14
	x15
	x16         // IP0: free at a function's entry and at its return (AAPCS64 §6.1.1)
	x17         // IP1: the same
	lr  isa.Reg = 30
	sp  isa.Reg = 31
	zr  isa.Reg = 31
)

// What AT_HWCAP and AT_HWCAP2 say (arch/arm64/include/uapi/asm/hwcap.h).
const (
	hwcapAtomics = 1 << 8
	hwcapSVE     = 1 << 22
	hwcap2SME    = 1 << 23
)
