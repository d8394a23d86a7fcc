//go:build !linux

package sampler

import (
	"context"

	"github.com/callreel/callreel/process"
)

// Sample returns process.ErrUnsupported.
func Sample(context.Context, SampleOptions) (*Profile, error) { return nil, process.ErrUnsupported }

// isFile returns false.
func isFile(string, uint64) bool { return false }
