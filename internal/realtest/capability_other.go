//go:build !linux

package realtest

import (
	"fmt"
	"os/exec"
	"runtime"
)

func ownThread(*exec.Cmd) {}

func canTrace() error {
	return fmt.Errorf("%w: %s: this is %s", ErrMissing, LivePtrace, runtime.GOOS)
}

func runsI386() error {
	return fmt.Errorf("%w: %s: this is %s", ErrMissing, I386, runtime.GOOS)
}

func canBreak() error {
	return fmt.Errorf("%w: %s: this is %s", ErrMissing, Breakpoints, runtime.GOOS)
}

func canSample() error {
	return fmt.Errorf("%w: %s: this is %s", ErrMissing, PerfEvents, runtime.GOOS)
}

func canCount() error {
	return fmt.Errorf("%w: %s: this is %s", ErrMissing, InstructionCounter, runtime.GOOS)
}

func canMakeRoot() error {
	return fmt.Errorf("%w: %s: this is %s", ErrMissing, CleanChroot, runtime.GOOS)
}

func isRoot() error {
	return fmt.Errorf("%w: %s: this is %s", ErrMissing, Superuser, runtime.GOOS)
}
