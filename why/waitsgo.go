package why

import (
	"context"
	"slices"

	"github.com/callreel/callreel/reel"
)

// readies are the functions of Go's runtime by which a goroutine lets another one go on: the one by which all others do it, if that is
// recorded, so that each counts once.
func readies(f *reel.File) map[uint32]bool {
	found, all := map[uint32]bool{}, map[uint32]bool{}
	f.Functions(func(id uint32, fn reel.Function) bool {
		switch fn.Name {
		case "runtime.ready":
			all[id] = true
		// Those of channels are only called where one waits.
		case "runtime.goready", "runtime.readyWithTime", "runtime.send", "runtime.recv", "runtime.closechan":
			found[id] = true
		}
		return true
	})
	for id := range all {
		if fn, ok := f.Function(id); ok && fn.Tier != reel.TierNone {
			return all
		}
	}
	return found
}

// maxGoSteps is how many goroutines are followed: each takes two readings of the reel.
const maxGoSteps = 3

// followGoroutines goes from goroutine to goroutine: who made each go on, and what that did meanwhile. t is the tree of the call. inner are the
// functions that it waits in, the innermost first. timer says that one of the runtime's timers ended the first wait.
func (x *explainer) followGoroutines(ctx context.Context, s *stretch, goroutine uint64, t *tree) (steps []Waiter, timer bool) {
	ready := readies(x.f)
	if len(ready) == 0 || x.f.Events() > searchable {
		return nil, false
	}
	leaves := away(x.f)
	seen := map[uint64]bool{goroutine: true}
	for len(steps) < maxGoSteps && ctx.Err() == nil {
		w, inner := window{s.From, s.To}, t.chain(s.node)
		var r readied
		if _, parked := leaves[t.nodes[s.node].fn]; parked {
			r = x.readier(goroutine, w, ready, leaves)
		} else { // its thread waited, in the kernel
			tid := x.waker(s)
			if tid <= 0 {
				break
			}
			thread, ok := x.threadOf(tid, s.To)
			if !ok {
				return append(steps, Waiter{TID: int(tid), Path: []string{}, NS: x.ns(w.to - w.from), Text: "a thread of another process"}), false
			}
			r = readied{by: x.goroutineOn(thread.Key, s.To), thread: thread.Key, at: s.To}
		}
		if r.by == 0 {
			return steps, r.timer && len(steps) == 0
		}
		w.to = min(w.to, r.at)
		t = x.goroutineDuring(ctx, r.by, w)
		step := x.step(t, &reel.Thread{TID: x.threads[r.thread].TID, Name: x.threads[r.thread].Name}, []window{w})
		step.Goroutine = r.by
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
		if next == nil || float64(blocked) < mostWaiting*float64(w.to-w.from) || seen[r.by] {
			break
		}
		steps[len(steps)-1].same = sameChain(inner, t.chain(next.node))
		seen[r.by] = true
		goroutine, s = r.by, next
	}
	return steps, false
}

// readied is who made a goroutine go on.
type readied struct {
	by     uint64 // a goroutine, 0 if it was none
	timer  bool   // it was the runtime's scheduler itself, which runs timers
	thread uint32
	at     uint64
}

// schedules says of functions of the Go runtime on a thread's own stack that the goroutine before has left: what follows is the scheduler's.
func schedules(f *reel.File) map[uint32]bool {
	found := map[uint32]bool{}
	f.Functions(func(id uint32, fn reel.Function) bool {
		switch fn.Name {
		case "runtime.schedule", "runtime.park_m", "runtime.goexit0", "runtime.findRunnable":
			found[id] = true
		}
		return true
	})
	return found
}

// readier is who made a goroutine go on at the end of a wait. The runtime's calls don't say whom they let go on. But who is let go on by a
// thread comes next on that thread, unless another one takes it, and whoever comes next there takes the one before. So it is the last on the
// goroutine's own thread whom nobody has come for yet; else the last anywhere.
func (x *explainer) readier(goroutine uint64, w window, ready map[uint32]bool, leaves map[uint32]reel.RunState) (last readied) {
	slack := x.ticks(1000)
	left := schedules(x.f)
	type processor struct {
		on   uint64 // the last goroutine on the thread, for which its own stack works
		away bool   // that one has left
		let  []readied
	}
	threads := map[uint32]*processor{}
	x.f.ReadGoroutines(func(id uint64, key uint32, events []reel.Event, _ bool) bool {
		if events[0].Time > w.to+slack {
			return false
		}
		p := threads[key]
		if p == nil {
			p = &processor{}
			threads[key] = p
		}
		if id != 0 && (id != p.on || p.away) {
			// The goroutine comes onto the thread.
			n := len(p.let)
			if id == goroutine && events[0].Time+slack >= w.to && n > 0 {
				last = p.let[n-1]
				return false
			}
			p.on, p.away, p.let = id, false, p.let[:max(n-1, 0)]
		}
		for i := range events {
			e := &events[i]
			_, leaving := leaves[e.ID()]
			switch {
			case id != 0 && leaving:
				p.away = !e.IsExit()
			case id == 0 && left[e.ID()] && !e.IsExit():
				p.away = true
			case ready[e.ID()] && !e.IsExit() && (p.on != goroutine || p.away) && e.Time >= w.from && e.Time <= w.to:
				r := readied{by: p.on, thread: key, at: e.Time}
				if id == 0 && p.away {
					r.by, r.timer = 0, true
				}
				p.let = append(p.let[max(0, len(p.let)-maxLet):], r)
			}
		}
		return true
	})
	if last.at > 0 {
		return last
	}
	for _, p := range threads {
		for _, r := range p.let {
			if r.at > last.at || r.at == last.at && r.thread < last.thread {
				last = r
			}
		}
	}
	return last
}

// maxLet is how many goroutines that were let go on, and for whom nobody has come, are kept of a thread.
const maxLet = 64

// goroutineOn is the goroutine that was on a thread at a tick, 0 if that isn't known.
func (x *explainer) goroutineOn(thread uint32, tick uint64) (on uint64) {
	x.f.ReadGoroutines(func(id uint64, key uint32, events []reel.Event, _ bool) bool {
		if key == thread && id != 0 && events[0].Time <= tick {
			on = id
		}
		return events[0].Time <= tick
	})
	return on
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
	threads := newGoroutineThreads(x.f)
	begin := func() {
		begun = true
		b.opened(c.p.State(nil))
		c.p.OnEntry = b.entered
		c.p.OnCall = func(x *reel.Call) { b.left(x) }
	}
	c.p.SetTops(nil)
	x.f.ReadGoroutines(func(id uint64, thread uint32, events []reel.Event, lost bool) bool {
		m := threads.take(keyOf(id, thread), thread, events, lost)
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
		c.moved(thread, m, leaves)
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
