package pace

import (
	"context"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longestNap is how long a nap may be: who waits for its end, since the recording is over, waits so long at most.
const longestNap = 2 * Step

// Wait rests for d, or until ctx ends. With nap a short rest is one that Go's scheduler isn't told of: it doesn't notice ctx, and may end early.
//
// A goroutine that rests gives its processor (a P of Go's scheduler) back. If it was the last that did anything, Go's monitor, sysmon, goes to
// sleep until the next timer. So it is woken together with each loop that rests for a millisecond, and looks around once or twice more. Who naps
// keeps the processor meanwhile: there must be one more of them than others need, see runtime.GOMAXPROCS. What stops the world interrupts a nap
// by the signal that is for loops without calls.
func Wait(ctx context.Context, d time.Duration, nap bool) {
	if nap && d <= longestNap {
		ts := unix.NsecToTimespec(int64(max(d, 0)))
		_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
