package recorder

import (
	"errors"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/capture"
	"github.com/callreel/callreel/recorder/internal/control"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/refusal"
	"github.com/callreel/callreel/recorder/internal/target"
	"github.com/callreel/callreel/recorder/internal/text"
)

// The kinds of failure that callers act on; the errors returned wrap them.
var (
	// ErrUnsupported: this machine can't run live verbs.
	ErrUnsupported = process.ErrUnsupported
	// ErrRecorded: another recorder is at work on the process.
	ErrRecorded = target.ErrRecorded
	// ErrNotRecorded: detach found nothing to remove.
	ErrNotRecorded = target.ErrNotRecorded
	// ErrLeftBehind: probes of a recorder that died are still in the process.
	ErrLeftBehind = errors.New("a recorder that died has left its probes")
	// ErrNothing: no function of the process was chosen that can be probed.
	ErrNothing = errors.New("no function to record")
	// ErrNoRecorder: there is nobody to ask for a dump.
	ErrNoRecorder = control.ErrNobody
	// ErrNotSettable: a recording can't be changed in that way while it is on.
	ErrNotSettable = probes.ErrNotSettable
	// ErrRefused: recording could harm the process.
	ErrRefused = refusal.Err
	// ErrText: the process's text isn't what the file says, and isn't ours.
	ErrText = text.Err
)

// ArgumentError says that an argument, or a result, can't be recorded as it was asked for. Flag is the option, Text what it was given, and
// Err, which it wraps, says why.
type ArgumentError = capture.Error

// NoMatchError is the error of a glob that matches nothing. Flag is the option that it was given with, and Glob the glob as it was given.
// Near are up to five names that are like it, the nearest first.
type NoMatchError = glob.NoMatchError
