package armed

import (
	"fmt"
	"time"
)

// Past is what is kept of the past besides what the rings hold.
type Past struct {
	Memory int    // bytes that may be used for it
	Used   int    // bytes that are
	Events uint64 // that are kept
	// Lasts is how much time the memory is for at the present rate; 0 if nothing comes.
	Lasts time.Duration
	// ReachesBack is since when all calls of all threads are kept; 0 if since recording began.
	ReachesBack time.Duration
}

// lasting finds out for how long the memory lasts, and says so.
type lasting struct {
	samples []sample // one a second, the oldest first
	said    time.Duration
	saidAt  time.Time
	keep    time.Duration // what was asked for when it was said
}

type sample struct {
	at    time.Time
	bytes uint64
}

const (
	lastingSamples = 10
	// lastingFirst is behind how many of them it is said first, saidAgain how often at most it is said again, when it has doubled or halved.
	lastingFirst = 3
	saidAgain    = 30 * time.Second
)

// add takes a sample of how much has been kept in all.
func (l *lasting) add(at time.Time, bytes uint64) {
	if len(l.samples) > lastingSamples {
		l.samples = append(l.samples[:0], l.samples[1:]...)
	}
	l.samples = append(l.samples, sample{at, bytes})
}

// lasts is how long so much memory lasts at the rate of the last seconds, 0 if that isn't known.
func (l *lasting) lasts(memory int) time.Duration {
	const most = 1000 * time.Hour
	n := len(l.samples)
	if n < 2 {
		return 0
	}
	first, last := l.samples[0], l.samples[n-1]
	if last.bytes == first.bytes {
		return 0
	}
	return time.Duration(min(float64(memory)/float64(last.bytes-first.bytes)*float64(last.at.Sub(first.at)), float64(most)))
}

// say says it if there is something new, else nothing.
func (l *lasting) say(now time.Time, memory int, keep time.Duration) string {
	lasts := l.lasts(memory)
	if lasts == 0 || len(l.samples) < lastingFirst {
		return ""
	}
	if l.said != 0 && (now.Sub(l.saidAt) < saidAgain || lasts < 2*l.said && 2*lasts > l.said) && l.keep == keep {
		return ""
	}
	l.said, l.saidAt, l.keep = lasts, now, keep
	text := fmt.Sprintf("at this rate %s last %s", inMemory(memory), inTime(lasts))
	if lasts < keep {
		text += fmt.Sprintf(", less than the %v that dumps are to hold; --memory gives more", keep)
	}
	return text
}

// inMemory is a size for people.
func inMemory(bytes int) string {
	if bytes < 1<<20 {
		return fmt.Sprintf("%d KB", bytes>>10)
	}
	return fmt.Sprintf("%d MB", bytes>>20)
}

// inTime is a time for people.
func inTime(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < 10*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 3*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return "for days"
}
