package libraries

import (
	"context"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/mapped"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
)

// loads hears of the libraries that the dynamic loader has loaded, from the thread that loads them, see stub/amd64's loader.go. That thread waits
// meanwhile. So that a process that does nothing but load and unload libraries isn't kept from it, they have a credit of
// time: without it nobody waits, and libraries are looked for at the usual times.
type loads struct {
	memory *ring.Memory // nil where nothing is heard
	upTo   uint32       // the load that was heard of last
	left   time.Duration
	since  time.Time // that left is of
	ready  chan struct{}
}

const (
	// mostCredit is how long threads may be kept waiting in a row, and creditShare by how much less than time goes by that comes back.
	mostCredit  = 3 * time.Second
	creditShare = 10
	// smallText is how many bytes of code may have been loaded for the thread to wait for their planning, of some ms a megabyte.
	smallText = 2 << 20
)

func newLoads(s *target.Target) loads {
	l := loads{left: mostCredit, since: time.Now(), ready: make(chan struct{}, 1)}
	if s.Runtime.Loads {
		l.memory = s.Memory
	}
	return l
}

// fetched tells that what a library lacked has been fetched. Any goroutine may call it, until the looking has ended and some time behind that.
func (l *loads) fetched() {
	select {
	case l.ready <- struct{}{}:
	default: // it is known already
	}
	if l.memory != nil {
		l.memory.WakeLoads()
	}
}

// wait waits for that long, or until a library is loaded, if there is credit for it, or has been fetched for, and says whether one has been.
func (l *loads) wait(ctx context.Context, rest time.Duration) (told bool) {
	for until := time.Now().Add(rest); ; {
		now := time.Now()
		rest := until.Sub(now)
		if l.memory == nil || l.earn(now) <= 0 {
			select {
			case <-ctx.Done():
			case <-l.ready:
				return true
			case <-time.After(rest):
			}
			rest = 0
		}
		select {
		case <-l.ready:
			return true
		default:
		}
		if l.memory != nil {
			if n := l.memory.Loads(); n != l.upTo {
				l.upTo = n
				return true
			}
		}
		if rest <= 0 || ctx.Err() != nil {
			return false
		}
		l.memory.WaitLoads(l.upTo, rest)
	}
}

// earn returns the credit.
func (l *loads) earn(now time.Time) time.Duration {
	l.left = min(l.left+now.Sub(l.since)/creditShare, mostCredit)
	l.since = now
	return l.left
}

// take tells threads that what they wait for is being done.
func (l *loads) take() {
	if l.memory != nil {
		l.memory.TakeLoads(l.upTo)
	}
}

// pass lets threads go on, as what is being done takes long.
func (l *loads) pass() {
	if l.memory != nil {
		l.memory.LetLoadsWait(false)
	}
}

// seen lets the threads go on whose libraries have been seen to.
func (l *loads) seen() {
	if l.memory == nil {
		return
	}
	l.memory.EndLoads(l.upTo)
	now := time.Now()
	l.left -= now.Sub(l.since)
	l.since = now
	l.memory.LetLoadsWait(l.left > 0)
}

// takeIfSmall has threads wait for what has come, if planning it doesn't take long.
func (l *Libraries) takeIfSmall(maps []process.Mapping) {
	size := uint64(0)
	for i := range maps {
		m := &maps[i]
		if mapped.IsCode(m) && !l.seen[mapped.PlaceOf(m)] && l.imageAt(m) == nil {
			size += m.Size()
		}
	}
	if size <= smallText {
		l.loads.take()
		return
	}
	l.loads.pass()
}
