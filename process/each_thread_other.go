//go:build !(linux && amd64)

package process

import (
	"context"
	"time"
)

// EachThread returns ErrUnsupported.
func (*Process) EachThread(context.Context, StopOptions, []int, func(*Thread, error) error, func(int, time.Duration)) error {
	return ErrUnsupported
}

// ReadUpTo reads nothing.
func (*Process) ReadUpTo([]byte, uint64) int { return 0 }

// WaitingAt returns ErrUnsupported.
func (*Process) WaitingAt(int) (Waiting, error) { return Waiting{}, ErrUnsupported }
