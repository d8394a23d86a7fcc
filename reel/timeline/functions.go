package timeline

import (
	"slices"

	"github.com/callreel/callreel/reel"
)

// eachFunction goes through the functions called in a segment and how many calls
// of each began in it, in order of their IDs, until yield returns false.
func eachFunction(summary []byte, yield func(fn, calls uint32) bool) error {
	var w wire
	err := reel.CatchFaults(func() error { // what is called may be none of the file's faults
		p, ok := nextPart(&summary)
		if w.b = slices.Clone(p.checked()); !ok || p.tag != 0 || w.b == nil {
			return errBlock
		}
		return nil
	})
	if err != nil {
		return err
	}
	last := uint64(0)
	for n := w.atMost(uint64(len(w.b))); n > 0 && !w.bad; n-- {
		last += w.atMost(1<<32 - 1 - last)
		calls := w.atMost(1<<32 - 1)
		if !w.bad && !yield(uint32(last), uint32(calls)) {
			return nil
		}
	}
	if w.bad {
		return errBlock
	}
	return nil
}
