package armed

import (
	"github.com/callreel/callreel/recorder/internal/scheduling"
	"github.com/callreel/callreel/reel"
)

// called are the threads that are in a dump for their calls.
func (a *Loop) called(threads []*threadRuns) (list []scheduling.Called) {
	for _, t := range threads {
		if t.w == nil {
			continue
		}
		c := scheduling.Called{PID: t.pid, TID: t.tid, Since: t.since, Writer: t.w, Kept: t.kept}
		if t.end != 0 {
			c.Seen = t.seen
		}
		list = append(list, c)
	}
	return list
}

// writeStates writes what the scheduler did with threads, those that have called and others.
func (a *Loop) writeStates(w *reel.Writer, win window, called []scheduling.Called) error {
	if a.Scheduler == nil {
		return nil
	}
	return a.Scheduler.WriteTo(w, win.from, win.to, called)
}
