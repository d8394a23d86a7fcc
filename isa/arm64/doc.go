// Package arm64 names the registers of AArch64 and their DWARF numbers.
package arm64
