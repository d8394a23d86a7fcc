// Package lint checks call frame information against the code that it describes, without running it.
//
// Check follows the code of every function, of x86-64 and arm64, over all its paths and tracks where the stack pointer stands relative
// to the frame's CFA, which registers still hold the values that they had on entry, and where the others were saved.
// Each row is compared with that. What differs on paths that meet, and what is loaded from anywhere but the own frame,
// is not known, and nothing is said about it: a finding is meant to be true.
//
// It takes for granted what compilers take for granted: a function is entered with the return address on the top of the
// stack, or in x30, calls return and keep the callee-saved registers (System V AMD64 ABI §3.2.1; Procedure Call Standard for
// the Arm 64-bit Architecture §6.1), and no pointer leads to where registers are saved.
//
// What a processor's instructions do is in a small type, processor, and in files with the processor's name.
//
// The tables themselves are checked on every architecture: records that cannot be read, rows behind the end, FDEs that
// overlap or describe no code, functions without an FDE, and .eh_frame_hdr.
package lint
