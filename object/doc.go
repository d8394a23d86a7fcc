// Package object reads native images, ELF and Mach-O: their ID, segments, sections, symbols, relocations, unwind tables and companions.
//
// Every byte of an image is untrusted. Offsets and sizes are checked with
// overflow-safe arithmetic before they are used or memory is taken, loops are
// bounded by the size of the file, and a damaged table is reported by an error
// that names the file, the part and its place. No reader panics.
//
// An Image reads what it is asked for into memory of its own, once (see Open). Byte
// slices that its methods return alias that and must not be used after Close; strings
// and inflated sections are copies and stay valid. Debug information that is large
// can be had as a part of a mapping (see MapSections, CatchFaults). What a file makes
// its readers take is bounded by an Allowance.
//
// A fat Mach-O file is opened for one architecture or by ID (see OpenArch, OpenID).
// Debug information that is in other files - separate debug files, dSYM bundles, the
// common part that dwz takes out, split units, object files - is found by a
// DebugSearch.
package object
