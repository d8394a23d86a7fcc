package main

import (
	"path"
	"time"

	"github.com/spf13/pflag"

	"github.com/callreel/callreel/recorder"
)

// filterFlags are the flags of record by which calls are filtered out.
type filterFlags struct {
	min     time.Duration
	threads []string
	depth   int
	inside  []string
	every   uint32
}

func (f *filterFlags) add(fl *pflag.FlagSet) {
	fl.DurationVar(&f.min, "min", 0, "keep only calls that take at least this long, such as 50us, and their callers")
	fl.StringArrayVar(&f.threads, "threads", nil, "only threads whose name matches this `GLOB` (repeatable)")
	fl.IntVar(&f.depth, "depth", 0, "only the outermost `N` recorded calls of each stack")
	fl.Uint32Var(&f.every, "every", 0, "record one call in `N` of each function, and count them all")
	fl.StringArrayVar(&f.inside, "inside", nil, "only calls of functions that match this `GLOB`, and the calls inside them (repeatable)")
}

func (f *filterFlags) filters() recorder.Filters {
	return recorder.Filters{Min: f.min, Threads: f.threads, Depth: f.depth, Inside: f.inside, Every: f.every}
}

// decide says whether it is decided of each call whether it is recorded.
func (f *filterFlags) decide() bool {
	return f.min > 0 || f.depth > 0 || len(f.inside) > 0 || f.every > 1
}

// badGlob is one that can't match anything, as its syntax is wrong; empty if there is none.
func (f *filterFlags) badGlob() string {
	for _, g := range f.threads {
		if _, err := path.Match(g, ""); err != nil {
			return g
		}
	}
	return ""
}
