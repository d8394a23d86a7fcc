//go:build !linux

package main

import (
	"errors"
	"time"
)

// threadCPU is what the whole process has used: nothing else is at work while threads are measured.
func threadCPU() time.Duration { return cpuTime() }

// processCPU isn't known here.
func processCPU(int) (time.Duration, error) { return 0, errors.ErrUnsupported }
