//go:build !linux

package doctor

import "context"

// Machine says that nothing can be recorded here.
func Machine(context.Context, Options) []Check { return []Check{unsupported()} }

// Process says that nothing can be recorded here.
func Process(context.Context, int) ([]Check, *Functions) { return []Check{unsupported()}, nil }
