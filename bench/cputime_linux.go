package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// threadCPU is what the calling OS thread has used.
func threadCPU() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// processCPU returns the processor time of a process, its threads that have ended included (clock_getcpuclockid(3)).
func processCPU(pid int) (time.Duration, error) {
	const group = 2 // CPUCLOCK_SCHED of all threads
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|group, &t); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
