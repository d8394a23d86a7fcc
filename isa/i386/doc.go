// Package i386 names the registers of 32-bit x86 and their DWARF numbers.
package i386
