package recorder

import "time"

// Less says which of the chosen functions' calls are left out of a recording.
type Less struct {
	// Min keeps only calls that take at least as long, and their callers; 0 keeps all. It needs reel.ClockFull.
	Min time.Duration
}

// ticks is Min in ticks of the clock.
func (l *Less) ticks(perSecond uint64) uint64 {
	return uint64(l.Min.Seconds() * float64(perSecond))
}
