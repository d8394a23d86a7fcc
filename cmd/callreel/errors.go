package main

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder"
)

// exitCode maps errors to the exit codes that scripts rely on.
func exitCode(err error) int {
	var e *exitError
	var noMatch *recorder.NoMatchError
	switch {
	case errors.As(err, &e):
		return e.code
	case errors.Is(err, process.ErrCommandNotFound):
		return 127 // as shells have it
	case errors.Is(err, process.ErrCommandNotExecutable):
		return 126
	case errors.As(err, &noMatch), strings.HasPrefix(err.Error(), "unknown command"), errors.Is(err, fs.ErrExist):
		return exitUsage
	}
	for _, not := range []error{
		process.ErrUnsupported, process.ErrNotPermitted, process.ErrTraced, process.ErrForeignArch, process.ErrSelf,
		process.ErrKernelThread, process.ErrSeccomp, process.ErrNoThreadID, process.ErrNoGadget, process.ErrNoSafeThread,
		process.ErrStopTimeout, process.ErrNotReady, recorder.ErrUnsupported, recorder.ErrRecorded, recorder.ErrRefused,
		recorder.ErrLeftBehind, fs.ErrPermission,
	} {
		if errors.Is(err, not) {
			return exitNotPermitted
		}
	}
	return exitFailed
}

// message is the error as the user sees it, with the program's name before it once.
func message(err error) string {
	s := err.Error()
	if !strings.HasPrefix(s, "callreel") {
		s = "callreel: " + s
	}
	return s
}
