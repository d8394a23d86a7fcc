package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/recorder/invoke"
)

// Exit codes. Scripts rely on them.
const (
	exitDone         = 0
	exitFailed       = 1
	exitUsage        = 2
	exitNotPermitted = 3
	// Of a command that could not be started, as shells have them.
	exitNotExecutable = 126
	exitNotFound      = 127
)

// exitError ends the program with a code of its own. Its err may be nil when all has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError is an error of the command line.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode maps errors to the exit codes that scripts rely on.
func exitCode(err error) int {
	var e *exitError
	var noMatch *recorder.NoMatchError
	var argument *recorder.ArgumentError
	var marker *recorder.MarkerError
	var imported *recorder.ImportError
	var signal signalCause
	switch {
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &noMatch), errors.As(err, &argument), errors.As(err, &marker), errors.As(err, &imported), errors.Is(err, fs.ErrExist):
		return exitUsage
	case errors.As(err, &signal):
		return signal.exitCode()
	case errors.Is(err, process.ErrCommandNotFound):
		return exitNotFound
	case errors.Is(err, process.ErrCommandNotExecutable):
		return exitNotExecutable
	}
	for _, not := range []error{
		process.ErrUnsupported, process.ErrNotPermitted, process.ErrTraced, process.ErrForeignArch, process.ErrSelf,
		process.ErrKernelThread, process.ErrSeccomp, process.ErrNoThreadID, process.ErrNoGadget, process.ErrNoSafeThread,
		process.ErrStopTimeout, process.ErrTooMuch, object.ErrMemory, process.ErrMemoryShared, process.ErrNotReady, recorder.ErrUnsupported, recorder.ErrRecorded, recorder.ErrRefused,
		recorder.ErrLeftBehind, invoke.ErrRefused, recorder.ErrNothing, recorder.ErrNoRecorder, fs.ErrPermission,
	} {
		if errors.Is(err, not) {
			return exitNotPermitted
		}
	}
	return exitFailed
}

// message is the error as the user sees it: with the program's name before it once, and safe for a terminal, since
// errors quote names from files and processes.
func message(err error) string {
	lines := strings.Split(strings.TrimRight(err.Error(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	if !strings.HasPrefix(lines[0], "callreel") {
		lines[0] = "callreel: " + lines[0]
	}
	return strings.Join(lines, "\n")
}
