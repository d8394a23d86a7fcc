// Package arguments finds where a function's arguments and its result are: it reads what is asked for ("F(name, c->argc)"), looks
// up the types in the image's DWARF, and works out by the rules of the ABI in which registers, or where in memory, the values stand at the
// function's entry and at its return.
//
// It goes by the ABI, not by DWARF's locations: those of optimized code say where a debugger finds a variable later on. Where DWARF or
// the symbol's name tells that the compiler has changed the function's signature, a location that holds at the very entry is used, and
// without one the argument is refused.
//
// Files are untrusted: everything is bounded, and what can't be understood is refused.
package arguments
