// Package symbols compiles an image's DWARF and symbol tables into a symbol map
// (.symmap), a file that is mapped and answers any code address with its function,
// file, line and chain of inlined calls; and it finds the map of an image by ID.
package symbols
