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
	heard  chan uint32  // the number of the latest load
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
	// listenFor is for how long a thread listens in one go. It is in a system call meanwhile, and Go's runtime looks after that up to 20,000
	// times a second, for some milliseconds: it is to begin seldom.
	listenFor = 10 * time.Second
)

func newLoads(s *target.Target) loads {
	l := loads{left: mostCredit, since: time.Now(), ready: make(chan struct{}, 1), heard: make(chan uint32)}
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
}

// listen hears of loads until end is called. What comes while nobody asks is heard of then.
func (l *loads) listen(ctx context.Context) (end func()) {
	if l.memory == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for seen := uint32(0); ctx.Err() == nil; {
			l.memory.WaitLoads(seen, listenFor)
			if n := l.memory.Loads(); n != seen {
				seen = n
				select {
				case l.heard <- n:
				case <-ctx.Done():
				}
			}
		}
	}()
	return func() {
		cancel()
		l.memory.WakeLoads()
		<-ended
	}
}

// wait waits for that long, or until a library is loaded, if there is credit for it, or has been fetched for, and says whether one has been.
func (l *loads) wait(ctx context.Context, rest time.Duration) (told bool) {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	heard := l.heard
	if l.memory == nil || l.earn(time.Now()) <= 0 {
		heard = nil
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case <-l.ready:
			return true
		case n := <-heard:
			if int32(n-l.upTo) > 0 { // it wasn't seen to with one that came before
				l.upTo = l.memory.Loads()
				return true
			}
		case <-timer.C:
			return false
		}
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
