package sampler

import (
	"testing"
	"time"

	"github.com/callreel/callreel/process"
)

func TestThreadThatGetsLittleOfTheProcessorIsStarved(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		state       byte // at the look before
		blocked     uint64
		ran, queued time.Duration
		want        bool
	}{
		"it ran":                            {'R', 0, 100 * ms, 0, false},
		"it had a third":                    {'R', 0, 33 * ms, 67 * ms, false},
		"it had a tenth":                    {'R', 0, 10 * ms, 90 * ms, true},
		"it is queued yet, not counted":     {'R', 0, 0, 0, true},
		"the hypervisor took the processor": {'R', 0, 5 * ms, 0, true},
		"it waited and ran":                 {'R', 3, 5 * ms, 0, false},
		"it waited, and then was queued":    {'S', 1, 5 * ms, 60 * ms, true},
		"it has just come from its wait":    {'S', 0, 5 * ms, 0, false},
	} {
		before := process.Activity{State: c.state, Blocked: 7, CPU: time.Second, Queued: time.Second}
		now := process.Activity{State: 'R', Blocked: 7 + c.blocked, CPU: before.CPU + c.ran, Queued: before.Queued + c.queued}
		if got := starved(&before, &now, 100*ms); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	none := process.Activity{State: 'R'}
	if starved(&none, &none, 100*ms) {
		t.Error("a kernel that does not count says nothing")
	}
}
