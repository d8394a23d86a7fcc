//go:build !linux

package main

import "time"

// threadCPU is what the whole process has used: nothing else is at work while threads are measured.
func threadCPU() time.Duration { return cpuTime() }
