package target

import (
	"fmt"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/recorder/internal/stub/arm64"
)

// generator is none yet: process.Open declines every process here before one is asked. It will be arm64.Generator, which can't do all that is
// asked of it yet.
func generator() codegen { return noCode{} }

// reach is how far an arena may be from the far end of its images: what B has bits for, with some spare.
const reach = 1<<27 - 1<<20

// gateTag is what an open gate has in it besides the address of the slots.
const gateTag = arm64.GateTag

type noCode struct{}

func (noCode) Bound(*stub.Config, []stub.Probe) uint64 { return 0 }

func (noCode) Syscalls(stub.Purpose) []stub.Syscall { return nil }

func (noCode) JumpOf(*stub.Patch) (uint64, bool) { return 0, false }

func (noCode) Compile(uint64, stub.Config, []stub.Probe, []byte) (*stub.Code, error) {
	return nil, fmt.Errorf("callreel: stubs: %w", process.ErrUnsupported)
}
