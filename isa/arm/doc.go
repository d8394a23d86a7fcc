// Package arm names the registers of 32-bit ARM and their DWARF numbers.
package arm
