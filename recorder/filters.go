package recorder

import (
	"time"

	"github.com/callreel/callreel/recorder/internal/ring"
)

// Filters says which of the chosen functions' calls are left out of a recording.
type Filters struct {
	// Min keeps only calls that take at least as long, and their callers; 0 keeps all. It needs reel.ClockFull.
	Min time.Duration
	// Threads are globs, as Choice has them, of the names of threads; empty for all. Calls of others aren't recorded, and of a thread
	// that gets another name those while it is one of them. That is noticed within a second.
	Threads []string
	// Depth is how many recorded calls there may be above one another in a stack, up to MaxDepth: only the outermost are recorded. 0 is
	// for any number.
	Depth int
	// Inside are globs, as Choice has them, of functions: only their calls are recorded, and those that are made while one of them is
	// open in the same stack. Empty for all. They are taken whether or not Choice.Functions has them.
	Inside []string
	// Every, if above 1, lets one in so many calls of each function be recorded, of those that all else lets through; the reel says how
	// many there were, see reel.File.Made.
	Every uint32
}

// MaxDepth is the most that Filters.Depth may be.
const MaxDepth = 100

// any says whether any calls are left out.
func (f *Filters) any() bool { return f.Min > 0 || len(f.Threads) > 0 || f.decideAtEntry() }

// decideAtEntry says whether it is decided at each entry whether the call is recorded.
func (f *Filters) decideAtEntry() bool { return f.Depth > 0 || len(f.Inside) > 0 || f.Every > 1 }

// ticks is Min in ticks of the clock.
func (f *Filters) ticks(perSecond uint64) uint64 {
	return ring.TicksOf(f.Min, perSecond)
}
