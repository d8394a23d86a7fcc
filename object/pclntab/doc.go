// Package pclntab reads the table by which a Go program's runtime finds its functions: names, source lines, inlined
// calls, and how far the stack pointer is from the frame's begin at each instruction. The linker writes it into every Go
// program, and stripping leaves it, as the runtime couldn't work without it.
//
// The format is the runtime's own and isn't documented but by its source (runtime/symtab.go, internal/abi/symtab.go); the
// one since Go 1.18 is read. Everything is checked against the table's size: a damaged table gives errors and less, never
// a panic or work without bounds.
package pclntab
