package process

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime is how much processor time a process has used, in user space and in the kernel, with that of threads that have ended
// (clock_getcpuclockid(3), CPUCLOCK_SCHED).
func CPUTime(pid int) (time.Duration, error) {
	const group = 2 // CPUCLOCK_SCHED, of all threads
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|group, &t); err != nil {
		return 0, fmt.Errorf("callreel: process %d: its processor time: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
