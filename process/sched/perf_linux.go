package sched

import "fmt"

func openPerf(Options) (*bpfSource, error) { return nil, fmt.Errorf("perf: %w: TODO", ErrUnavailable) }
