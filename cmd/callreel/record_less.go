package main

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/callreel/callreel/recorder"
)

// lessFlags are the flags of record by which calls are left out.
type lessFlags struct {
	min time.Duration
}

func (f *lessFlags) add(fl *pflag.FlagSet) {
	fl.DurationVar(&f.min, "min", 0, "keep only calls that take at least this long, such as 50us, and their callers")
}

func (f *lessFlags) less() recorder.Less {
	return recorder.Less{Min: f.min}
}
