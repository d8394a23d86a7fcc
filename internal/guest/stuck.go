package guest

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
	"time"
)

// ErrStuck: a processor of the guest has been in its kernel for a minute, and won't come out. No program may bring a kernel to that: it is an
// error of the kernel's or of the emulator's. Linux 6.1.192 (Debian 6.1.192-2) was seen so once, in event_function_call, as a perf event was
// closed.
var ErrStuck = errors.New("the guest's kernel is stuck")

// stuckFor is how long that is, in seconds by the kernel's own watchdog. It tells of less where the emulator has to wait for a processor.
const stuckFor = 60

// lookEvery is how often it is looked what the kernel says.
const lookEvery = 2 * time.Second

var softLockup = regexp.MustCompile(`soft lockup - CPU#\d+ stuck for (\d+)s`)

// isStuck says whether the kernel's watchdog says so.
func isStuck(said []byte) bool {
	for _, m := range softLockup.FindAllSubmatch(said, -1) {
		if n, err := strconv.Atoi(string(m[1])); err == nil && n >= stuckFor {
			return true
		}
	}
	return false
}

// untilStuck looks at what the kernel says until ctx ends, and ends it by stop when the kernel is stuck.
func untilStuck(ctx context.Context, console string, stop context.CancelCauseFunc) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if said, err := os.ReadFile(console); err == nil && isStuck(said) {
			stop(ErrStuck)
			return
		}
	}
}
