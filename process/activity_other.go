//go:build !(linux && amd64)

package process

// A Passage notices a thread's coming by an address. There are none here.
type Passage struct{}

// Activity returns ErrUnsupported.
func (*Process) Activity(int) (Activity, error) { return Activity{}, ErrUnsupported }

// FileOf returns ErrUnsupported.
func (*Process) FileOf(int) (string, error) { return "", ErrUnsupported }

// Passage returns ErrUnsupported.
func (*Process) Passage(int, uint64) (*Passage, error) { return nil, ErrUnsupported }

// Seen returns false.
func (*Passage) Seen() bool { return false }

// Close does nothing.
func (*Passage) Close() error { return nil }
