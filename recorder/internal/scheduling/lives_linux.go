package scheduling

import (
	"time"

	"github.com/callreel/callreel/process"
)

// endedTime is for how long more is expected of a thread that has ended: calls that are still in the rings.
const endedTime = 2 * time.Second

// who is a thread, as long as its ID isn't used again.
type who struct{ pid, tid int }

// lives are the threads that there are, or were a moment ago. Of those with the same ID each has its part of the time.
type lives struct {
	by   map[who][]*life // in order of time
	over []*life         // that have ended, in the order in which that was noted
}

// life is a thread from its beginning to its end.
type life struct {
	who
	began uint64 // the tick from which on the ID is this one's; 0 for the first that was met
	ended uint64 // the tick at which the scheduler saw its end, 0 if it didn't
	met   time.Time
	noted time.Time // when its end was

	block   block
	waiting bool // it is listed as one that waits
	base    sums

	part part // of a reel that is written all the time
	kept kept // of an armed recording
}

func newLives() lives { return lives{by: map[who][]*life{}} }

// at returns whose a word of that tick is.
func (l *lives) at(w who, tick uint64) *life {
	list := l.by[w]
	if len(list) == 0 {
		return l.add(w, 0)
	}
	i := len(list) - 1
	for i > 0 && list[i].began > tick {
		i--
	}
	k := list[i]
	switch {
	case k.ended == 0 || tick <= k.ended:
		return k
	case i+1 < len(list):
		list[i+1].began = tick
		return list[i+1]
	}
	return l.add(w, k.ended+1)
}

// latest returns who has the ID now, as far as that is known; nil if nobody was met.
func (l *lives) latest(w who) *life {
	list := l.by[w]
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// add adds one that has the ID from that tick on.
func (l *lives) add(w who, began uint64) *life {
	k := &life{who: w, began: began, met: time.Now()}
	l.by[w] = append(l.by[w], k)
	return k
}

// end notes that the scheduler saw a thread end.
func (l *lives) end(k *life, tick uint64, now time.Time) {
	if k.ended == 0 {
		k.ended, k.noted = max(tick, 1), now
		l.over = append(l.over, k)
	}
}

// expire notes that a thread isn't there any more, which the scheduler may not have said yet.
func (l *lives) expire(k *life, now time.Time) {
	k.noted = now
	l.over = append(l.over, k)
}

// forget forgets threads that ended long before now. done is told of each; it returns false for one that is needed still, and then those
// that ended after it are kept, too.
func (l *lives) forget(now time.Time, done func(*life) bool) {
	n := 0
	for n < len(l.over) && now.Sub(l.over[n].noted) >= endedTime && done(l.over[n]) {
		l.drop(l.over[n])
		n++
	}
	if n > 0 {
		kept := copy(l.over, l.over[n:])
		clear(l.over[kept:])
		l.over = l.over[:kept]
	}
}

func (l *lives) drop(k *life) {
	list := l.by[k.who]
	for i, x := range list {
		if x == k {
			list = append(list[:i], list[i+1:]...)
			break
		}
	}
	if len(list) == 0 {
		delete(l.by, k.who)
		return
	}
	l.by[k.who] = list
}

// endMissing ends those that the scheduler has not seen end, as its words were lost, and that aren't there any more.
func (l *lives) endMissing(now time.Time, tick uint64) {
	for w, list := range l.by {
		if k := list[len(list)-1]; k.ended == 0 && process.ThreadGone(w.pid, w.tid) {
			l.end(k, tick, now)
		}
	}
}
