// Package unwind walks the stack of a stopped thread: from its registers and its
// memory to the return addresses of all callers, and says how the walk ended.
//
// Each frame's caller is found by the first rule that applies: the row of call
// frame information for the address (package cfi); the layout of a signal frame;
// for code without CFI the way its instructions take to a return (PLT stubs,
// _init, hand-written assembly), the frame pointer, or the return address on top of
// the stack. Whatever the rule, each step is checked: the stack pointer moves
// outward in a mapped stack and keeps its alignment, and the return address lies in
// code; what was guessed rather than read from CFI must also follow a call, or lead to
// another frame record in code that no file is behind, where interpreters live.
//
// A Walker keeps what it has found out about an address, so that a later walk
// through it costs nanoseconds. It sees memory and images through the interfaces
// Memory and Images, knows no system, and takes every byte for hostile: a walk is
// bounded, never panics, and one that did not reach the outermost frame has an End
// that says why.
package unwind
