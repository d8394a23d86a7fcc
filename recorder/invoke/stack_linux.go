package invoke

import (
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/unwind"
)

// standingOf is where a thread stands, by its stack.
func standingOf(t *sampler.Thread, waits bool) standing {
	s := standing{waits: waits, places: placesOf(t.Frames)}
	if !t.End.Complete() {
		s.end = t.End.String()
	}
	return s
}

func placesOf(frames []sampler.Frame) []place {
	var out []place
	for _, f := range frames {
		p := place{name: f.Linkage, signal: f.Flags&unwind.SignalFrame != 0}
		if f.Image != nil {
			p.image = f.Image.Name()
		}
		out = append(out, p)
	}
	return out
}

// where says in words what a thread is in: the innermost function with a name.
func (s standing) where() string {
	doing := "runs"
	if s.waits {
		doing = "waits"
	}
	for _, p := range s.places {
		if p.name != "" {
			return doing + " in " + p.name
		}
	}
	return doing
}

// graceOverdue is how long a thread whose time is over may run on to where it can be put back.
const graceOverdue = 2 * time.Second

// overdue decides on a thread that has not returned from the function in time. It may hold locks that the function has taken. By the same
// rules as before it is judged whether one of them is the C library's, in which case the process would soon stand still.
func (c *caller) overdue(t *process.Thread) process.Overdue {
	switch c.o.Overdue {
	case Back:
		return process.Overdue{Do: process.PutBack}
	case Leave:
		return process.Overdue{Do: process.LeaveThere}
	}
	if c.overdueSince.IsZero() {
		c.overdueSince = time.Now()
	}
	if c.maybePutBack(t) {
		return process.Overdue{Do: process.PutBack}
	}
	if time.Since(c.overdueSince) < graceOverdue {
		return process.Overdue{Do: process.AskAgain, After: 10 * time.Millisecond}
	}
	return process.Overdue{Do: process.LeaveThere}
}

// maybePutBack says whether nothing speaks against putting a thread back that stands in the function.
func (c *caller) maybePutBack(t *process.Thread) bool {
	stack, err := c.holder.Stack(t)
	if err != nil {
		return false
	}
	_, waits, err := t.InSyscall()
	if err != nil {
		return false
	}
	end := -1
	for k := range stack.Frames {
		if stack.Frames[k].Address == t.ReturnsTo() {
			end = k
			break
		}
	}
	if end < 0 {
		return false // it isn't known where the function's part ends
	}
	s := standing{waits: waits, places: append(placesOf(stack.Frames[:end]), place{image: "callreel", name: "callreel"})}
	return s.unsafe() == ""
}
