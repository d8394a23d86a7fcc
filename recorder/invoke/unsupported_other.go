//go:build !linux

package invoke

import (
	"context"

	"github.com/callreel/callreel/process"
)

// Call returns process.ErrUnsupported.
func Call(context.Context, Options) (*Result, error) { return nil, process.ErrUnsupported }
