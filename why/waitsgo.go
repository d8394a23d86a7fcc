package why

import (
	"context"
	"slices"

	"github.com/callreel/callreel/reel"
)

// readies are the functions of Go's runtime by which a goroutine lets another one go on.
func readies(f *reel.File) map[uint32]bool {
	found := map[uint32]bool{}
	f.Functions(func(id uint32, fn reel.Function) bool {
		switch fn.Name {
		// Those of channels are only called where one waits.
		case "runtime.goready", "runtime.ready", "runtime.readyWithTime", "runtime.send", "runtime.recv", "runtime.closechan":
			found[id] = true
		}
		return true
	})
	return found
}

// maxGoSteps is how many goroutines are followed: each takes two readings of the reel.
const maxGoSteps = 3

// followGoroutines goes from goroutine to goroutine: who made each go on, and what that did meanwhile.
//
// inner are the functions that it waits in, the innermost first.
func (x *explainer) followGoroutines(ctx context.Context, s *stretch, goroutine uint64, inner []uint32) (steps []Waiter) {
	ready := readies(x.f)
	if len(ready) == 0 || x.f.Events() > searchable {
		return nil
	}
	seen := map[uint64]bool{goroutine: true}
	w := window{s.From, s.To}
	for len(steps) < maxGoSteps && ctx.Err() == nil {
		by, thread, at := x.readier(goroutine, w, ready)
		if by == 0 {
			break
		}
		w.to = min(w.to, at)
		t := x.goroutineDuring(ctx, by, w)
		step := x.step(t, &reel.Thread{TID: x.threads[thread].TID, Name: x.threads[thread].Name}, []window{w})
		step.Goroutine = by
		steps = append(steps, step)
		var next *stretch
		blocked := uint64(0)
		for i := range t.spans {
			if v := &t.spans[i]; v.State == reel.StateBlocked {
				blocked += v.To - v.From
				if next == nil || v.To-v.From > next.To-next.From {
					next = v
				}
			}
		}
		if next == nil || float64(blocked) < mostWaiting*float64(w.to-w.from) || seen[by] {
			break
		}
		steps[len(steps)-1].same = sameChain(inner, t.chain(next.node))
		seen[by] = true
		goroutine, w = by, window{next.From, next.To}
	}
	return steps
}

// readier is the goroutine that made another one go on at the end of a wait: the last that did so to any before.
func (x *explainer) readier(goroutine uint64, w window, ready map[uint32]bool) (by uint64, thread uint32, at uint64) {
	slack := x.ticks(1000)
	on := map[uint32]uint64{} // the last goroutine on each thread, for which its own stack works
	x.f.ReadGoroutines(func(id uint64, key uint32, events []reel.Event, _ bool) bool {
		if events[0].Time > w.to+slack {
			return false
		}
		if id == 0 {
			id = on[key]
		}
		on[key] = id
		if id == goroutine || id == 0 || events[len(events)-1].Time < w.from {
			return true
		}
		for i := range events {
			if e := &events[i]; !e.IsExit() && ready[e.ID()] && e.Time >= w.from && e.Time <= w.to && e.Time >= at {
				by, thread, at = id, key, e.Time
			}
		}
		return true
	})
	return by, thread, at
}

// goroutineDuring is what a goroutine did in a window.
func (x *explainer) goroutineDuring(ctx context.Context, goroutine uint64, w window) *tree {
	b := &builder{t: newTree(otherStack, activityNodes), now: w.from, last: w.to, depth: -1}
	c := &goroutineCall{b: b, clock: &goroutineClock{f: x.f}}
	b.holds = away(x.f)
	b.clock = c.clock
	b.down(0, frame{0, -1, w.from})
	leaves := b.holds
	begun := false
	ran := map[uint32]uint64{}
	begin := func() {
		begun = true
		b.opened(c.p.State(nil))
		c.p.OnEntry = b.entered
		c.p.OnCall = func(x *reel.Call) { b.left(x) }
	}
	c.p.SetTops(nil)
	x.f.ReadGoroutines(func(id uint64, thread uint32, events []reel.Event, lost bool) bool {
		on := ran[thread] == id && c.thread == thread
		ran[thread] = id
		if id != goroutine {
			return events[0].Time <= w.to && ctx.Err() == nil
		}
		if lost {
			c.p.Lost()
		}
		b.thread = thread
		n := 0
		if !begun {
			for n < len(events) && events[n].Time < w.from {
				n++
			}
			c.p.Push(events[:n])
			if n == len(events) {
				c.thread = thread
				if x.hasStates {
					c.clock.on = newStateClock(x.f, thread, max(w.from, events[n-1].Time))
				}
				return true
			}
			begin()
		}
		c.moved(thread, on, events[n].Time, leaves)
		c.thread = thread
		if x.hasStates && c.clock.on == nil {
			c.clock.on = newStateClock(x.f, thread, max(w.from, events[n].Time))
		}
		c.p.Push(events[n:])
		return events[len(events)-1].Time <= w.to && ctx.Err() == nil
	})
	if !begun {
		begin()
	}
	return b.end()
}

// chain are the functions of a path, the innermost first.
func (t *tree) chain(at int32) (fns []uint32) {
	for ; at >= 0; at = t.nodes[at].parent {
		fns = append(fns, t.nodes[at].fn)
	}
	return fns
}

// sameChain says whether two goroutines wait in the same place: in the runtime's functions, and by whom those were called.
func sameChain(a, b []uint32) bool {
	const most = 4
	n := min(most, len(a), len(b))
	return n > 0 && slices.Equal(a[:n], b[:n])
}
