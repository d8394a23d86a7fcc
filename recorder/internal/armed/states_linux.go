package armed

import (
	"github.com/callreel/callreel/recorder/internal/scheduling"
	"github.com/callreel/callreel/reel"
)

// writeStates writes what the scheduler did with the threads.
func (a *Loop) writeStates(w *reel.Writer, win window, threads []*threadRuns) error {
	if a.Scheduler == nil {
		return nil
	}
	var called []scheduling.Called
	for _, t := range threads {
		if t.w == nil {
			continue
		}
		c := scheduling.Called{PID: t.pid, TID: t.tid, Since: t.since, Writer: t.w, Kept: t.kept}
		if t.end != 0 {
			c.Seen = t.seen
		}
		called = append(called, c)
	}
	return a.Scheduler.WriteTo(w, win.from, win.to, called)
}
