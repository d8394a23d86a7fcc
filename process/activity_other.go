//go:build !(linux && amd64)

package process

import "time"

// A Passage notices a thread's coming by an address. There are none here.
type Passage struct{}

// Activity returns ErrUnsupported.
func (*Process) Activity(int) (Activity, error) { return Activity{}, ErrUnsupported }

// Blocked returns ErrUnsupported.
func (*Process) Blocked(int) (uint64, error) { return 0, ErrUnsupported }

// CPU returns ErrUnsupported.
func (*Process) CPU() (time.Duration, error) { return 0, ErrUnsupported }

// FileOf returns ErrUnsupported.
func (*Process) FileOf(int) (string, error) { return "", ErrUnsupported }

// Passage returns ErrUnsupported.
func (*Process) Passage(int, uint64, int) (*Passage, error) { return nil, ErrUnsupported }

// Seen returns nil.
func (*Passage) Seen() []uint64 { return nil }

// Close does nothing.
func (*Passage) Close() error { return nil }
