package viewer

import (
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// argumentJSON is a value as api/call has it.
type argumentJSON struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	Value string `json:"value"`
}

// valuesOf are the values that were recorded of a call: its arguments, then its result.
func valuesOf(tl *timeline.Timeline, c *timeline.Found) []argumentJSON {
	f := tl.File()
	if !f.HasArguments() {
		return nil
	}
	thread := uint32(0)
	for _, l := range tl.Lanes() {
		if l.ID == c.Lane && l.Goroutine == 0 {
			thread = l.Thread
		}
	}
	var list []argumentJSON
	for _, atReturn := range []bool{false, true} {
		at := c.Start
		if atReturn {
			if c.Flags&(reel.Unfinished|reel.Implicit) != 0 {
				break
			}
			at += c.Duration
		}
		args := f.Arguments(c.Func, atReturn)
		values := f.ValuesBetween(c.Func, atReturn, thread, tl.Tick(at), tl.Tick(at+1))
		for i := range min(len(args), len(values)) {
			list = append(list, argumentJSON{args[i].Name, args[i].Type, args[i].Text(values[i])})
		}
	}
	return list
}
