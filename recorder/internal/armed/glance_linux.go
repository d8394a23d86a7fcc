package armed

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/callreel/callreel/recorder/internal/overdue"
	"github.com/callreel/callreel/recorder/internal/pace"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/target"
)

const (
	// leastGlance is how long a call that a trigger is about takes, at least, before its thread is looked at.
	leastGlance = time.Millisecond
	// maxGlances is how many looks are kept, the latest.
	maxGlances = 4096
)

// glances are looks at threads while calls take long that triggers are about: what such a call waits for may be of functions that a budget
// leaves out.
type glances struct {
	a    *Loop
	mu   sync.Mutex // guards kept
	kept []glance   // in order of time
	due  map[int]dueGlance
}

// glance is what was seen of a thread, by its ID as the target sees it, within a call.
type glance struct {
	tid int
	overdue.Look
}

// dueGlance is when the thread of an open call is to be looked at next.
type dueGlance struct {
	number uint64 // of the call
	after  uint64 // ticks since it began
}

// run looks until ctx ends.
func (g *glances) run(ctx context.Context) {
	for {
		rest := longestTick // triggers may be replaced
		if least := g.a.Triggers.Least(); least > 0 {
			rest = max(least/2, leastGlance)
			if g.round(ring.TicksOf(rest, g.a.TicksPerSecond)) {
				rest = max(least/4, leastGlance) // it may take still longer, and be somewhere else then
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pace.Rest(time.Now(), rest)):
		}
	}
}

// round asks what threads do whose calls have taken so many ticks, and keeps what has been answered. It says whether there are such calls.
func (g *glances) round(least uint64) (are bool) {
	now := ring.Ticks()
	due := map[int]dueGlance{}
	g.a.predicates.EachOpen(func(c ring.OpenCall) {
		is := now - min(c.From, now)
		if tid := g.a.calls.thread(c.Ctx); tid == 0 || is < least || ring.IsMarkID(c.Word>>1) {
			return
		}
		are = true
		d := g.due[c.Place]
		if d.number != c.Number {
			d = dueGlance{c.Number, least}
		}
		if is >= d.after && g.ask(&c) {
			d.after = is + is/4
		}
		due[c.Place] = d
	})
	g.due = due
	g.mu.Lock()
	defer g.mu.Unlock()
	for a := range g.a.Overdue.Answers {
		if len(g.kept) >= maxGlances {
			g.kept = slices.Delete(g.kept, 0, maxGlances/4)
		}
		g.kept = append(g.kept, glance{a.NSTID, a.Look})
	}
	return are
}

func (g *glances) ask(c *ring.OpenCall) bool {
	nstid := int(c.Ctx)
	tid := nstid
	if !g.a.sameNS {
		tid = target.OuterTID(g.a.Target.Process, nstid)
	}
	return g.a.Overdue.Ask(overdue.Question{TID: tid, NSTID: nstid, Within: overdue.Call{SP: c.SP, ID: c.Word >> 1}, Since: c.From})
}

// of are the looks at a thread in a window.
func (g *glances) of(t *thread, win window) (looks []overdue.Look) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.kept {
		l := &g.kept[i]
		if l.tid == t.nstid && l.Tick >= win.from && l.Tick <= win.to && (t.end == 0 || int64(t.end-l.Tick) >= 0) {
			looks = append(looks, overdue.Look{Tick: l.Tick, Calls: slices.Clone(l.Calls)})
		}
	}
	return looks
}
