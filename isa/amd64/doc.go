// Package amd64 decodes x86-64 instructions (length, operands, branches, effects on registers, flags and stack) and
// names the registers and their DWARF numbers.
//
// Decode reads one instruction in 64-bit mode. It covers the legacy maps, 3DNow!, VEX, XOP and EVEX; APX (the REX2
// prefix and EVEX map 4) and what AVX10.2 added are refused as invalid. Loops over whole images should use DecodeTo.
// The package decides, it does not print: there are no mnemonics here.
//
// Where Intel and AMD differ, Intel's way is taken: a near branch with the operand-size prefix keeps its 32-bit
// displacement (AMD would read 16 bits and cut RIP to 16 bits, which no 64-bit program survives), and UD0 has a
// ModRM byte.
//
// The questions about effects (FlagsRead, GPRWritten and their siblings) err to the safe side, which each of them
// names.
package amd64
