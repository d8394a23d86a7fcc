package why

import (
	"cmp"
	"context"
	"slices"

	"github.com/callreel/callreel/reel"
)

// goroutineClock is the clock of a goroutine while its events are read: what its thread did while it was on one, and that it waited while it
// was on none.
type goroutineClock struct {
	f      *reel.File
	before *stateClock // of the thread that it was on up to left
	left   uint64      // tick
	on     *stateClock // of the thread that it is on; nil if no states are known
	off    uint64      // up to when it was on none, in ticks
	gapped reel.RunState
}

// piece implements clock.
func (c *goroutineClock) piece(from, to uint64) (s reel.StateInterval, ok bool) {
	switch {
	case from >= to:
		return s, false
	case from < c.left && c.before != nil:
		return c.before.piece(from, min(to, c.left))
	case from < c.off:
		return reel.StateInterval{From: from, To: min(to, c.off), State: c.gapped, CPU: -1, Preempted: c.gapped == reel.StateReady}, true
	case c.on != nil:
		return c.on.piece(from, to)
	}
	return reel.StateInterval{From: from, To: to, CPU: -1}, true
}

// goroutineCall is a call of a goroutine whose tree is being made.
type goroutineCall struct {
	ref    int
	p      reel.Pairer
	b      *builder
	clock  *goroutineClock
	thread uint32
}

// goroutineReplay makes trees of calls of goroutines.
type goroutineReplay struct {
	f       *reel.File
	refs    []ref
	trees   []*tree
	limit   replayed
	pending map[runKey][]int // refs by their starts
	active  map[runKey][]*goroutineCall
	on      *goroutineThreads
	left    int
	away    map[uint32]reel.RunState
}

func replayGoroutines(ctx context.Context, f *reel.File, refs []ref, trees []*tree, limit replayed) {
	r := goroutineReplay{f: f, refs: refs, trees: trees, limit: limit, pending: map[runKey][]int{}, active: map[runKey][]*goroutineCall{}, on: newGoroutineThreads(f), left: len(refs), away: away(f)}
	for i := range refs {
		k := keyOf(refs[i].goroutine, refs[i].thread)
		r.pending[k] = append(r.pending[k], i)
	}
	for _, list := range r.pending {
		slices.SortFunc(list, func(a, b int) int { return cmp.Compare(refs[a].start, refs[b].start) })
	}
	f.ReadGoroutines(func(id uint64, thread uint32, events []reel.Event, lost bool) bool {
		r.take(keyOf(id, thread), thread, events, lost)
		return r.left > 0 && ctx.Err() == nil
	})
	for _, list := range r.active {
		for _, c := range list {
			r.finish(c)
		}
	}
}

// away are the functions of Go's runtime in which a goroutine leaves its thread and goes on, and what it does in between. One that left
// elsewhere may have gone on long before its next event.
func away(f *reel.File) map[uint32]reel.RunState {
	found := map[uint32]reel.RunState{}
	f.Functions(func(id uint32, fn reel.Function) bool {
		switch fn.Name {
		case "runtime.gopark", "runtime.goparkunlock":
			found[id] = reel.StateBlocked
		case "runtime.asyncPreempt", "runtime.asyncPreempt2", "runtime.Gosched", "runtime.goyield", "runtime.goschedguarded", "runtime.exitsyscall", "runtime.morestack", "runtime.newstack":
			found[id] = reel.StateReady
		}
		return true
	})
	return found
}

// take takes the next events of a goroutine.
func (r *goroutineReplay) take(k runKey, thread uint32, events []reel.Event, lost bool) {
	if lost {
		for _, list := range r.active {
			for _, c := range list {
				c.p.Lost()
			}
		}
	}
	m := r.on.take(k, thread, events, lost)
	kept := r.active[k][:0]
	for _, c := range r.active[k] {
		c.moved(thread, m, r.away)
		c.push(events, thread)
		if c.b.done {
			r.finish(c)
			continue
		}
		kept = append(kept, c)
	}
	for last := events[len(events)-1].Time; len(r.pending[k]) > 0; r.pending[k] = r.pending[k][1:] {
		i := r.pending[k][0]
		x := &r.refs[i]
		if x.start > last {
			break
		}
		at := findEntry(r.f, events, x)
		if at < 0 {
			r.left--
			continue
		}
		c := &goroutineCall{ref: i, b: newBuilder(r.f, x, r.limit), clock: &goroutineClock{f: r.f}, thread: thread}
		if k.goroutine != 0 {
			c.b.clock, c.b.holds = c.clock, r.away
			if r.f.HasStates() {
				c.clock.on = newStateClock(r.f, thread, x.start)
			}
		}
		c.p.SetTops(nil)
		c.p.SetTime(x.start)
		c.b.attach(&c.p)
		c.push(events[at:], thread)
		if c.b.done {
			r.finish(c)
			continue
		}
		kept = append(kept, c)
	}
	if len(kept) == 0 {
		delete(r.active, k)
		return
	}
	r.active[k] = kept
}

// moved tells the clock how the goroutine came to go on, on a thread.
func (c *goroutineCall) moved(thread uint32, m move, away map[uint32]reel.RunState) {
	c.b.thread = thread
	if m.still && c.thread == thread {
		return
	}
	k := c.clock
	k.before, k.left = k.on, m.left
	k.off, k.gapped = m.came, m.to
	if s, ok := away[c.b.t.nodes[c.b.cur].fn]; ok {
		k.gapped = s
	} else if len(away) == 0 { // the runtime isn't recorded: most who leave wait
		k.gapped = reel.StateBlocked
	}
	if k.on != nil {
		k.on = newStateClock(k.f, thread, m.came)
	}
}

func (c *goroutineCall) push(events []reel.Event, thread uint32) {
	c.thread = thread
	c.b.push(&c.p, events)
}

func (r *goroutineReplay) finish(c *goroutineCall) {
	r.trees[c.ref] = c.b.end()
	r.left--
}
