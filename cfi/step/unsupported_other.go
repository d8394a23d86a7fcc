//go:build !linux || !(amd64 || arm64)

package step

import "context"

// Run returns ErrUnsupported.
func Run(context.Context, Options) (*Result, error) { return nil, ErrUnsupported }
