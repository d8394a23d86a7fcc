// Package dwarf reads what DWARF says about code: functions, inlined calls and
// lines, unit by unit and in parallel.
//
// It reads versions 2 to 5 in both formats and both byte orders, with split
// units, type units, supplementary files and relocatable files. It is no general
// reader: types, variables and scopes are stepped over. Each abbreviation is
// compiled once, to a program that steps over an entry of its kind, and for the
// few kinds that matter to one that takes out the attributes that matter; strings
// stay offsets (see String) until somebody asks for their bytes.
//
// Ranges that hold no code of the image are left out: those that linkers write
// for functions that they dropped (at 0, -1 or -2), empty ones, and all that
// starts outside the executable sections (segments, where no section is
// executable).
//
// In a relocatable file every section starts at address 0, so addresses say
// little. There .text keeps its offsets as addresses, and the other executable
// sections get places of their own above it: see Data.Place.
//
// All bytes are untrusted. Damage in one unit does not touch the others, every
// error is a *Problem that names file, section and offset, and time and memory
// are bounded by the size of the sections.
package dwarf
