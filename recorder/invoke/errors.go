package invoke

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrRefused is the error of what isn't done since it could harm the process. Nothing was changed. See RefusedError.
	ErrRefused = errors.New("refused")
	// ErrArguments is the error of arguments that don't fit the function, as its debug information has it.
	ErrArguments = errors.New("the arguments don't fit")
)

// A RefusedError says of each thread why no function could be called in it. It is an ErrRefused.
type RefusedError struct {
	PID     int
	Threads []ThreadRefusal // at most maxRefusals, of those that were looked at last
	More    int             // threads that aren't listed
	Waited  string          // for how long a safe point was looked for
}

// A ThreadRefusal is why no function could be called in a thread.
type ThreadRefusal struct {
	TID  int
	Name string
	Why  string
}

// maxRefusals bounds how many threads an error names.
const maxRefusals = 8

func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "process %d: %v: in %s no thread was at a point where a function can be called without risk", e.PID, ErrRefused, e.Waited)
	for _, t := range e.Threads {
		fmt.Fprintf(&b, "\n  thread %d (%s): %s", t.TID, t.Name, t.Why)
	}
	if e.More > 0 {
		fmt.Fprintf(&b, "\n  and %d more", e.More)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrRefused) true.
func (e *RefusedError) Is(target error) bool { return target == ErrRefused }
