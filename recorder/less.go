package recorder

import (
	"time"

	"github.com/callreel/callreel/recorder/internal/ring"
)

// Less says which of the chosen functions' calls are left out of a recording.
type Less struct {
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

// MaxDepth is the most that Less.Depth may be.
const MaxDepth = 100

// some says whether any calls are left out.
func (l *Less) some() bool { return l.Min > 0 || len(l.Threads) > 0 || l.chooses() }

// chooses says whether it is decided at each entry whether the call is recorded.
func (l *Less) chooses() bool { return l.Depth > 0 || len(l.Inside) > 0 || l.Every > 1 }

// ticks is Min in ticks of the clock.
func (l *Less) ticks(perSecond uint64) uint64 {
	return ring.TicksOf(l.Min, perSecond)
}
