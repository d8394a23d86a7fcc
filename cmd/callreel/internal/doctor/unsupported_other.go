//go:build !(linux && amd64)

package doctor

import (
	"context"
	"runtime"

	"github.com/callreel/callreel/process"
)

// Machine says that nothing can be recorded here.
func Machine(context.Context, Options) []Check { return []Check{unsupported()} }

// Process says that nothing can be recorded here.
func Process(context.Context, int) ([]Check, *Functions) { return []Check{unsupported()}, nil }

func unsupported() Check {
	return no("system", "record on Linux on x86-64; report, export and functions FILE work here", "%s on %s: %v", runtime.GOOS, runtime.GOARCH, process.ErrUnsupported)
}
