//go:build !linux

package recorder

import (
	"context"
	"os"
	"path/filepath"
)

// SignalCause is a context's cause that names the signal which has ended it: a command that was started for recording
// is sent the same.
type SignalCause interface {
	error
	Signal() os.Signal
}

// Record returns ErrUnsupported.
func Record(context.Context, Options) (*Result, error) { return nil, ErrUnsupported }

// Detach returns ErrUnsupported.
func Detach(context.Context, int) (*Detached, error) { return nil, ErrUnsupported }

// AskForDump returns ErrUnsupported.
func AskForDump(context.Context, int, DumpRequest) (Dumped, error) { return Dumped{}, ErrUnsupported }

// AskToSet returns ErrUnsupported.
func AskToSet(context.Context, int, SetRequest) (SetAnswer, error) {
	return SetAnswer{}, ErrUnsupported
}

// AskToPause returns ErrUnsupported.
func AskToPause(context.Context, int, string) error { return ErrUnsupported }

// AskToResume returns ErrUnsupported.
func AskToResume(context.Context, int) error { return ErrUnsupported }

// FunctionsOfProcess returns ErrUnsupported.
func FunctionsOfProcess(context.Context, int, Choice) (*Listing, error) {
	return nil, ErrUnsupported
}

// DefaultOutput is the reel's name where none is given.
func DefaultOutput(_ int, command []string) string {
	if len(command) > 0 {
		return filepath.Base(command[0]) + ".reel"
	}
	return "callreel.reel"
}

// MarkersOfProcess returns ErrUnsupported.
func MarkersOfProcess(context.Context, int, []string, Choice) ([]MarkerSite, error) {
	return nil, ErrUnsupported
}

// ImportsOfProcess returns ErrUnsupported.
func ImportsOfProcess(context.Context, int, ImportQuery) ([]ImportSlot, error) {
	return nil, ErrUnsupported
}
