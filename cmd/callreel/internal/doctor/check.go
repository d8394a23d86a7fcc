package doctor

import (
	"fmt"
	"runtime"

	"github.com/callreel/callreel/process"
)

// State is what came out of a check.
type State string

// The states.
const (
	OK      State = "ok"
	Warning State = "warning" // something does not work, or not fully; recording itself does
	No      State = "no"      // recording does not work
)

// Check is one thing that was looked at.
type Check struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	What  string `json:"what"`         // what was found
	Do    string `json:"do,omitempty"` // what to do about it
}

// Works says whether recording works as far as the checks go.
func Works(checks []Check) bool {
	for _, c := range checks {
		if c.State == No {
			return false
		}
	}
	return true
}

func ok(name, what string, args ...any) Check {
	return Check{Name: name, State: OK, What: fmt.Sprintf(what, args...)}
}

func warning(name, do, what string, args ...any) Check {
	return Check{Name: name, State: Warning, What: fmt.Sprintf(what, args...), Do: do}
}

func no(name, do, what string, args ...any) Check {
	return Check{Name: name, State: No, What: fmt.Sprintf(what, args...), Do: do}
}

// Functions counts the functions of a process.
type Functions struct {
	Seen    int            `json:"seen"`
	Traced  int            `json:"traced"`
	Refused map[string]int `json:"refused"`
}

// unsupported is the one check of a machine on which nothing is recorded.
func unsupported() Check {
	return no("system", "record on Linux on x86-64 or arm64; report, export and functions FILE work here", "%s on %s: %v", runtime.GOOS, runtime.GOARCH, process.ErrUnsupported)
}
