package why

import (
	"context"

	"github.com/callreel/callreel/reel"
)

// runKey tells goroutines, and threads' own stacks, apart.
type runKey struct {
	goroutine uint64
	thread    uint32 // for 0
}

func keyOf(goroutine uint64, thread uint32) runKey {
	if goroutine != 0 {
		thread = 0
	}
	return runKey{goroutine, thread}
}

// goroutinePairer pairs the events of one goroutine.
type goroutinePairer struct {
	reel.Pairer
	thread uint32 // that it is on
}

// goroutines reads the calls of a Go program.
func (c *collector) goroutines(ctx context.Context, f *reel.File) {
	open := map[runKey]*goroutinePairer{}
	f.ReadGoroutines(func(id uint64, thread uint32, events []reel.Event, lost bool) bool {
		k := keyOf(id, thread)
		if lost { // those of whom events are missing aren't known
			for _, p := range open {
				p.Lost()
			}
		}
		p := open[k]
		if p == nil {
			p = &goroutinePairer{}
			p.SetTops(nil)
			c.attach(&p.Pairer, k, func() uint32 { return p.thread })
			p.SetTime(events[0].Time)
			open[k] = p
		}
		p.thread = thread
		p.Push(events)
		if f.Ends(events) {
			p.Abandon()
		}
		if p.Open() == 0 {
			delete(open, k)
		}
		return ctx.Err() == nil
	})
	for _, p := range open {
		p.Finish(f.LastTick())
	}
	clear(c.open)
}
