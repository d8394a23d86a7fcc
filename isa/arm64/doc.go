// Package arm64 decodes A64 instructions (branches, operands, effects on registers and flags) and names the registers
// of AArch64 and their DWARF numbers.
//
// Decode reads one instruction. It knows the base instruction set of Armv9.5-A and its SIMD and floating-point
// instructions one by one. Words in the encoding space of SVE and SME are told as such, allocated or not, and their
// effects on general registers are only bounded. Every other word, what later architectures add included, is refused
// as unknown. The package decides, it does not print: there are no mnemonics here.
//
// The questions about effects (GPRRead, FlagsWritten and their siblings) err to the safe side, which each of them
// names.
package arm64
