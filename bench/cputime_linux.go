package main

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
)

// threadCPU is what the calling OS thread has used.
func threadCPU() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// processCPU returns the processor time of a process, its threads that have ended included.
func processCPU(pid int) (time.Duration, error) { return process.CPUTime(pid) }
