package recorder

import (
	"fmt"

	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/reel"
)

// goOptions looks whether a Go program is to be recorded, and notes what its stubs need.
func (r *recording) goOptions(with []*mapped.Image) error {
	for _, im := range with {
		g, filters := im.Probe.Go, &r.opt.Filters
		if g == nil {
			continue
		}
		switch {
		case len(with) > 1:
			return fmt.Errorf("callreel: process %d: %w: a Go program with other code in it (%s)", r.s.PID(), ErrRefused, with[1].Path)
		case r.opt.Clock != reel.ClockFull:
			return fmt.Errorf("callreel: process %d: %w: the calls of a Go program's goroutines can't be told apart without times, so use --clock full", r.s.PID(), ErrRefused)
		case filters.any():
			return fmt.Errorf("callreel: process %d: %w: of a Go program all calls of the chosen functions are recorded; leave out --min, --threads, --depth, --inside and --every", r.s.PID(), ErrRefused)
		}
		r.s.BeGo(g)
		config := &r.s.Runtime
		config.Lazy, config.Follow = false, false
	}
	if r.isGo() != r.first.isGo() {
		return fmt.Errorf("callreel: process %d: %w: a reel holds either Go programs or others", r.s.PID(), ErrRefused)
	}
	return nil
}

// countSkipped corrects the counts of functions for those that were skipped.
func (r *recording) countSkipped() {
	n := len(r.s.Skipped)
	if n == 0 {
		return
	}
	r.result.Traced -= n
	r.result.Refused[plan.ReasonPreempted.String()] += n
	r.notice("%d functions are not recorded, since goroutines were preempted just where their probes would be", n)
}
