package sched

import (
	"errors"
	"runtime"
)

// The names of the sources.
const (
	SourceBPF       = "bpf"
	SourcePerf      = "perf"
	SourceSchedstat = "schedstat"
)

// ErrUnavailable is wrapped by the reasons why a source isn't used: it isn't permitted, or the kernel doesn't have it.
var ErrUnavailable = errors.New("not available")

// FaultMode says which page faults are told.
type FaultMode uint8

// The modes.
const (
	NoFaults    FaultMode = iota
	MajorFaults           // those that had to read something
	AllFaults             // the others too, until they are too many: see MinorFaultRate
)

// MinorFaultRate is how many minor faults a second, times the number of processors, are told at most: once there are more,
// minor faults aren't told any longer (Stats.MinorsEnded). Each costs the process some 0.75 µs, so that they take less than
// 1 % of its time.
const MinorFaultRate = 10_000

// Options says what is watched, and how.
type Options struct {
	PIDs     []int     // processes, with all their threads: those that they have and those that they will start
	Children bool      // and all processes that they start from now on
	Faults   FaultMode // page faults

	// BufferBytes bounds the memory that the kernel writes into, for all processors together; 0 is DefaultBuffer. At
	// least 64 KiB a processor are taken.
	BufferBytes int

	NoBPF  bool // don't use BPF, even if it is permitted
	NoPerf bool // don't use perf's events, even if they are permitted
}

// DefaultBuffer is what Options.BufferBytes is when it says nothing, 16 MiB a processor but 64 MiB in all: a busy processor
// has some 200,000 switches a second, each of 64 bytes with its wake-up, and who drains may have to wait for it.
func DefaultBuffer() int { return min(16<<20*runtime.NumCPU(), 64<<20) }

func (o Options) bufferBytes() int {
	if o.BufferBytes > 0 {
		return o.BufferBytes
	}
	return DefaultBuffer()
}
