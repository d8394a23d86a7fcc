package target

import "github.com/callreel/callreel/recorder/internal/stub"

// codegen makes the code of stubs. There is one for each processor: the package below stub that generator returns, in the file of that
// processor's name.
type codegen interface {
	// Bound is how many bytes the code of these functions has at most. It doesn't depend on the addresses in cfg.
	Bound(cfg *stub.Config, fns []stub.Probe) uint64
	// Span is which addresses an arena with the code of these functions has to have in reach, of their images, which occupy those from lo to hi.
	Span(fns []stub.Probe, lo, hi uint64) (from, to uint64)
	// Compile makes the code for an arena at base. It keeps fns, whose images must stay open while the result is in use. The code is put
	// into buf if that is large enough, else elsewhere; buf may be nil.
	Compile(base uint64, cfg stub.Config, fns []stub.Probe, buf []byte) (*stub.Code, error)
	// Syscalls are the system calls that stubs make for a purpose.
	Syscalls(p stub.Purpose) []stub.Syscall
	// JumpOf returns where the jump leads that a patch writes; is is false for a patch that writes something else.
	JumpOf(p *stub.Patch) (to uint64, is bool)
}
