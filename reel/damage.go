package reel

import (
	"fmt"
	"slices"
	"sync"
)

// Damage is a stretch of the file that could not be read.
type Damage struct {
	// Offset and Len are the stretch, in bytes.
	Offset, Len int64
	// Events is how many events were lost with it, as far as is known.
	Events uint64
	// What says what is wrong and what was lost.
	What string
}

// String returns the damage as a line of text.
func (d Damage) String() string {
	return fmt.Sprintf("bytes %d to %d: %s", d.Offset, d.Offset+d.Len, d.What)
}

// maxDamage bounds how many stretches are listed; a file that is damaged in
// more places has the rest summed up in the last one.
const maxDamage = 1000

// damageLog gathers damage. Chunks of events are checked when they are decoded,
// by several goroutines, and perhaps more than once.
type damageLog struct {
	mu   sync.Mutex
	list []Damage
	seen map[int64]bool
	more uint64
}

func (l *damageLog) add(d Damage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[d.Offset] {
		return
	}
	if len(l.list) >= maxDamage {
		last := &l.list[maxDamage-1]
		l.more++
		last.Events += d.Events
		last.Len = max(last.Len, d.Offset+d.Len-last.Offset)
		last.What = fmt.Sprintf("%d more damaged stretches", l.more)
		return
	}
	if l.seen == nil {
		l.seen = make(map[int64]bool)
	}
	l.seen[d.Offset] = true
	l.list = append(l.list, d)
}

func (l *damageLog) sorted() []Damage {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := slices.Clone(l.list)
	slices.SortFunc(list, func(a, b Damage) int { return int(max(-1, min(1, a.Offset-b.Offset))) })
	return list
}
