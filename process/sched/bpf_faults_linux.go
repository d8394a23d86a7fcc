package sched

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process/perf"
)

// faultBytes is for the rings of page faults: 10,000 a second and processor are at most 400 KB.
const faultBytes = 256 << 10

// addFaults lets perf's events tell of page faults, on the clock of the programs. A program behind handle_mm_fault would be
// cheaper, but many kernels don't have what that takes. Major faults, which are few, are told of all processes on all
// processors: that takes no descriptor for each thread.
func (s *bpfSource) addFaults(o Options) {
	if o.Faults == NoFaults {
		return
	}
	why := func(err error) { s.noFaults = fmt.Errorf("bpf: page faults: %w", whyNoPerf(err)) }
	if o.NoPerf {
		why(fmt.Errorf("%w: perf is switched off", ErrUnavailable))
		return
	}
	events, err := perf.OpenSwitches(perf.SwitchOptions{
		Bytes: faultBytes * len(s.cpus), Children: o.Children, Clock: s.clock(), Major: true, Minor: o.Faults == AllFaults,
	})
	if err != nil {
		why(err)
		return
	}
	if err := events.AddAll(); err != nil {
		why(err)
		_ = events.Close()
		return
	}
	s.pages = newPerf(events, o)
	s.pages.onlyFaults = true
	s.all = append(s.all, s.pages.all...)
}

func (s *bpfSource) clock() int32  { return unix.CLOCK_MONOTONIC }
func (s *bpfSource) faults() error { return s.noFaults }

func (s *bpfSource) minorsEnded() uint64 {
	if s.pages == nil {
		return 0
	}
	return s.pages.minorsEnd
}
