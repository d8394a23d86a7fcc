package recorder

import "time"

// Less says which of the chosen functions' calls are left out of a recording.
type Less struct {
	// Min keeps only calls that take at least as long, and their callers; 0 keeps all. It needs reel.ClockFull.
	Min time.Duration
	// Threads are globs, as Choice has them, of the names of threads; empty for all. Calls of others aren't recorded, and of a thread
	// that gets another name those while it is one of them. That is noticed within a second.
	Threads []string
}

// some says whether any calls are left out.
func (l *Less) some() bool { return l.Min > 0 || len(l.Threads) > 0 }

// ticks is Min in ticks of the clock.
func (l *Less) ticks(perSecond uint64) uint64 {
	return uint64(l.Min.Seconds() * float64(perSecond))
}
