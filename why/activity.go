package why

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sort"

	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/reel/timeline"
)

// window is a stretch of time, in ticks.
type window struct{ from, to uint64 }

// windowed is a clock that counts what lies in windows only. They are in order, and don't overlap.
type windowed struct {
	clock
	windows []window
}

// piece implements clock.
func (w *windowed) piece(from, to uint64) (s reel.StateInterval, ok bool) {
	for len(w.windows) > 0 && from < to {
		x := w.windows[0]
		if x.to <= from {
			w.windows = w.windows[1:]
			continue
		}
		if x.from >= to {
			break
		}
		return w.clock.piece(max(from, x.from), min(to, x.to))
	}
	return s, false
}

// unknownClock is the clock of what no states are known of.
type unknownClock struct{}

// piece implements clock.
func (unknownClock) piece(from, to uint64) (s reel.StateInterval, ok bool) {
	return reel.StateInterval{From: from, To: to, CPU: -1}, from < to
}

// activityNodes bounds the paths of a thread that are told apart.
const activityNodes = 1 << 13

// during is what a thread did in windows of time: a tree whose root is the thread itself.
func (x *explainer) during(ctx context.Context, thread uint32, windows []window) *tree {
	t := newTree(otherStack, activityNodes)
	if windows = joined(windows); len(windows) == 0 {
		return t
	}
	for _, part := range x.thin(thread, windows) {
		from, to := part[0].from, part[len(part)-1].to
		b := &builder{t: t, thread: thread, now: from, last: to, depth: -1}
		w := &windowed{windows: part, clock: unknownClock{}}
		if x.hasStates {
			w.clock = newStateClock(x.f, thread, from)
		}
		b.clock = w
		b.down(0, frame{0, -1, from})
		if tl := x.timeline(); x.found.marks[thread] == nil && tl != nil {
			x.visit(ctx, tl, b, thread, from, to)
		} else {
			x.read(ctx, b, thread, from, to)
		}
		b.end()
	}
	return t
}

const (
	mostEvents = 1 << 21 // of a thread that are looked at for a wait; of more there is a sample
	thinParts  = 16      // in how many places that is
)

// thin groups windows that are read in one go. If they have too many events, it leaves parts of them, evenly, so that shares of time stay.
func (x *explainer) thin(thread uint32, windows []window) (parts [][]window) {
	chunks := x.f.Chunks(thread)
	events := 0.0
	for _, w := range windows {
		events += eventsIn(chunks, w.from, w.to)
	}
	if events <= mostEvents {
		return [][]window{windows}
	}
	keep := mostEvents / events
	for _, w := range windows {
		for k := range uint64(thinParts) {
			from := w.from + (w.to-w.from)/thinParts*k
			to := from + uint64(keep*float64((w.to-w.from)/thinParts))
			if from < to {
				parts = append(parts, []window{{from, to}})
			}
		}
	}
	return parts
}

// joined sorts windows, and joins those that overlap.
func joined(windows []window) []window {
	list := slices.Clone(windows)
	slices.SortFunc(list, func(a, b window) int { return cmp.Compare(a.from, b.from) })
	kept := list[:0]
	for _, w := range list {
		if n := len(kept); n > 0 && w.from <= kept[n-1].to {
			kept[n-1].to = max(kept[n-1].to, w.to)
			continue
		}
		if w.from < w.to {
			kept = append(kept, w)
		}
	}
	return kept
}

// timeline is the reel's, if it has one that needn't be made.
func (x *explainer) timeline() *timeline.Timeline {
	if !x.looked {
		x.looked = true
		if x.f.MappedTimeline() != nil && !x.f.Header().Goroutines {
			x.tl = timeline.Stored(x.f, timeline.Options{})
		}
	}
	return x.tl
}

// visit reads a thread's calls by the timeline.
func (x *explainer) visit(ctx context.Context, tl *timeline.Timeline, b *builder, thread uint32, from, to uint64) {
	for _, l := range tl.Lanes() {
		if l.Thread != thread || l.Goroutine != 0 {
			continue
		}
		_ = tl.Visit(ctx, []uint32{l.ID}, tl.NS(from), min(tl.NS(to)+1, math.MaxUint64-1), timeline.Visitor{
			Enter:   func(_ uint32, c *reel.Call) { b.entered(c) },
			Leave:   func(_ uint32, c *reel.Call) bool { b.left(c); return c.End <= to },
			Paused:  func(uint32, int, uint64) {},
			Resumed: func(_ uint32, stack int, tick uint64) { b.switched(stack, tick) },
		})
	}
}

// read reads a thread's calls, from the mark before them on.
func (x *explainer) read(ctx context.Context, b *builder, thread uint32, from, to uint64) {
	var p reel.Pairer
	x.f.ReadyPairer(&p, thread)
	p.SetTime(x.f.FirstTick())
	chunks := x.f.Chunks(thread)
	at := 0
	if x.f.Header().Clock.Mode == reel.ClockFull {
		at = sort.Search(len(chunks), func(i int) bool { return chunks[i].Last >= from })
	}
	if m := x.found.marks[thread]; m != nil {
		var st *reel.PairerState
		if at, st = m.before(at); st != nil {
			p.SetState(*st)
		}
	} else {
		at = 0
	}
	begun, over := false, false
	var buf [blockEvents]reel.Event
	for first := at; at < len(chunks) && !over && ctx.Err() == nil; at++ {
		if at > first && chunks[at].Seq != chunks[at-1].Seq+1 {
			p.Lost()
		}
		err := x.f.DecodeBlocks(chunks[at], buf[:], func(events []reel.Event) []reel.Event {
			if !begun {
				n := 0
				for n < len(events) && events[n].Time < from {
					n++
				}
				p.Push(events[:n])
				if events = events[n:]; len(events) == 0 {
					return buf[:]
				}
				begun = true
				b.opened(p.State(nil))
				p.OnEntry = b.entered
				p.OnCall = func(c *reel.Call) { b.left(c) }
				p.OnSwitch = func(_, stack int, tick uint64) { b.switched(stack, tick) }
			}
			if over = events[0].Time > to; over {
				return nil
			}
			p.Push(events)
			return buf[:]
		})
		if err != nil {
			p.Lost()
		}
	}
	if !begun { // it made no calls since
		b.opened(p.State(nil))
	}
}

// opened takes the calls that are open where the windows begin: those of the current stack come last.
func (b *builder) opened(st reel.PairerState) {
	now := b.now
	enter := func(stack int) {
		for depth, o := range st.Stacks[stack].Open {
			c := reel.Call{Func: o.Func, Depth: depth, Stack: stack, Start: o.Start}
			b.entered(&c)
		}
	}
	for i := range st.Stacks {
		if i != st.Current {
			b.cur = 0
			enter(i)
		}
	}
	if b.cur = 0; st.Current < len(st.Stacks) {
		enter(st.Current)
	}
	b.now = now
}

// hot is the lowest path that holds most of a tree's time, and the lowest on the way there of which one call does.
func (t *tree) hot(w window) (path []int32, one int32, part float64) {
	total := make([]uint64, len(t.nodes))
	children := make([][]int32, len(t.nodes))
	for i := len(t.nodes) - 1; i >= 0; i-- {
		n := &t.nodes[i]
		total[i] += n.self.sum()
		if n.parent >= 0 {
			total[n.parent] += total[i]
			children[n.parent] = append(children[n.parent], int32(i))
		}
	}
	at, one := int32(0), int32(-1)
	for {
		best := int32(-1)
		for _, c := range children[at] {
			if best < 0 || total[c] > total[best] {
				best = c
			}
		}
		if best < 0 || float64(total[best]) < mostOf*float64(total[0]) {
			break
		}
		at = best
		path = append(path, at)
		n := &t.nodes[at]
		if from, to := max(n.from, w.from), min(n.to, w.to); to > from && float64(to-from) >= mostOf*float64(w.to-w.from) {
			one = at
		}
	}
	if total[0] > 0 && len(path) > 0 {
		part = float64(total[at]) / float64(total[0])
	}
	return path, one, part
}

// mostOf is what part of a wait a path has to cover to be named for it.
const mostOf = 0.6
