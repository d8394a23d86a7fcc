// Package capture knows what --args, --ret and --if ask for: of which functions values are recorded, where their stubs find them, and what
// the values mean that stubs have written.
package capture

import "fmt"

// Options are what was asked for. Args and Returns name functions and values, as arguments.Parse reads them, Conditions are those on
// calls, as arguments.ParseConditions does.
type Options struct{ Args, Returns, Conditions []string }

// Error says that a value can't be recorded as it was asked for. Flag is the option, Text what it was given.
type Error struct {
	Flag, Text string
	Err        error
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Flag, e.Text, e.Err) }

func (e *Error) Unwrap() error { return e.Err }
