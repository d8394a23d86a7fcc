package export

import "github.com/callreel/callreel/reel"

// treeParts converts the parts of nodes' times into nanoseconds such that those of a function add up to what a report says of it, though each
// is cut to whole nanoseconds.
type treeParts struct {
	clock *reel.TickClock
	of    map[uint32]*treePart // by function
	last  map[uint32]int       // the last node of each function, in the last tree
}

// treePart is what was told of a function.
type treePart struct {
	ticks reel.StateTimes
	self  uint64          // ticks
	told  reel.StateTimes // nanoseconds
}

// part is how long a node's stack was at its innermost frame itself in each state, in nanoseconds. It is asked once for each that counts, in order.
func (t *callTree) part(k int) reel.StateTimes {
	n, p := &t.nodes[k], t.parts
	f := p.of[n.fn]
	if f == nil {
		f = &treePart{}
		p.of[n.fn] = f
	}
	f.ticks, f.self = f.ticks.Plus(t.states[k]), f.self+n.self
	ns := p.clock.Nanoseconds
	sum := reel.StateTimes{Running: ns(f.ticks.Running), Ready: ns(f.ticks.Ready), Blocked: ns(f.ticks.Blocked)}
	if t.final {
		if p.last == nil {
			p.last = make(map[uint32]int)
			for i := range t.nodes {
				if t.counted(i) {
					p.last[t.nodes[i].fn] = i
				}
			}
		}
		if p.last[n.fn] == k { // what rounding takes from the others counts as running, in reports
			unknown := ns(f.self - min(f.self, f.ticks.Known()))
			sum.Running = ns(f.self) - min(ns(f.self), sum.Ready+sum.Blocked+unknown)
		}
	}
	part := sum.Minus(f.told)
	f.told = f.told.Plus(part)
	return part
}
