// Package step checks call frame information against the truth: it runs a command, carries out chosen functions instruction
// by instruction, and compares at each what the row of the address says with what the call really is.
//
// The truth is a shadow of the call, noted where it begins: on x86-64 the CFA is the stack pointer there plus 8, and the return
// address stands on the top of the stack; on arm64 the CFA is the stack pointer, and the return address is in x30. The
// callee-saved registers hold what the caller is to get back (System V AMD64 ABI §3.2; AAPCS64 §6.1). What a function calls runs at full speed, unless it is chosen, too.
//
// Calls end by returning, by a tail jump to what is not chosen, or by being unwound: longjmp, exceptions and switches to other
// stacks drop the shadows of the frames that are no more. Signals are delivered as they come, and the code that they have
// interrupted is followed on behind their handlers. Every thread has its own shadows; other processes that the command
// makes run freely, and so does another program that it executes.
//
// Unlike cfi/lint, which follows all paths and is silent where it does not know, step sees the paths only that are taken,
// and what it finds has happened.
package step
