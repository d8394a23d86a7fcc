// Package object reads native images (ELF now, Mach-O to come): their ID, segments, sections, symbols, relocations and unwind tables.
//
// Every byte of an image is untrusted. Offsets and sizes are checked with
// overflow-safe arithmetic before they are used or memory is taken, loops are
// bounded by the size of the file, and a damaged table is reported by an error
// that names the file, the part and its place. No reader panics.
//
// An Image keeps the whole file mapped (see Open). Byte slices that its methods
// return alias that mapping and must not be used after Close; strings and
// inflated sections are copies and stay valid.
package object
