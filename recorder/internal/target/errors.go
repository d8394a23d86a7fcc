package target

import "errors"

// The kinds of failure that callers act on.
var (
	// ErrRecorded: another recorder is at work on the process.
	ErrRecorded = errors.New("already being recorded")
	// ErrNotRecorded: there is nothing of a recorder's.
	ErrNotRecorded = errors.New("not being recorded")
)
