package imports

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Error says that an import can't be recorded as it was asked for. Text is what --imports was given.
type Error struct {
	Text string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("--imports %s: %v", e.Text, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// spec is one --imports: globs of a library's name and of a function's.
type spec struct {
	text, library, function string
	hit                     bool
}

// parse reads 'LIB:FUNC'. Demangled names have colons of their own, so the first one counts that isn't followed by another.
func parse(text string) (*spec, error) {
	library, function, has := strings.Cut(text, ":")
	if !has || library == "" || function == "" || strings.HasPrefix(function, ":") {
		return nil, errors.New("give LIB:FUNC, such as 'libssl.so*:SSL_*', or '*:FUNC' for any library")
	}
	for _, g := range []string{library, function} {
		if _, err := path.Match(g, ""); err != nil {
			return nil, fmt.Errorf("%q is no glob", g)
		}
	}
	return &spec{text: text, library: library, function: function}, nil
}
