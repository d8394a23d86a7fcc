package target

import (
	"fmt"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// generator is none yet: process.Open declines every process here before one is asked.
func generator() codegen { return noCode{} }

type noCode struct{}

func (noCode) Bound(*stub.Config, []stub.Probe) uint64 { return 0 }

func (noCode) Syscalls(stub.Purpose) []stub.Syscall { return nil }

func (noCode) Compile(uint64, stub.Config, []stub.Probe, []byte) (*stub.Code, error) {
	return nil, fmt.Errorf("callreel: stubs: %w", process.ErrUnsupported)
}
