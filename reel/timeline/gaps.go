package timeline

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/reel"
)

// findGaps notes what is missing before, in and behind events that were pushed;
// before is the time of the last event before it, in ticks.
func (lb *laneBuilder) findGaps(d block, before uint64) {
	first := before
	if len(d.events) > 0 {
		first = timeAt(d.events, 0, before)
	}
	if len(d.events) > 0 && lb.lost > 0 {
		lb.gap(lb.lostFrom, first, lb.lost)
		lb.lost = 0
	}
	if d.gone {
		lb.gap(before, first, 0)
	}
	for ; lb.drop < len(lb.drops) && lb.counted; lb.drop++ {
		x := &lb.drops[lb.drop]
		if x.After < lb.taken {
			continue
		}
		at := x.After - lb.taken
		if at >= uint64(len(d.events)) {
			break
		}
		start := before
		if at > 0 {
			start = timeAt(d.events, int(at)-1, before)
		}
		lb.gap(start, timeAt(d.events, int(at), start), x.Entries+x.Exits)
	}
	if d.lost > 0 && lb.lost == 0 {
		lb.lostFrom = lb.p.last
	}
	lb.lost += uint64(d.lost)
}

// lastGaps notes what is missing behind the last event, and the drops whose
// place among the events is not known because chunks are missing: there is
// their tick. Then it puts the gaps in order.
func (lb *laneBuilder) lastGaps(end uint64) {
	if lb.lost > 0 {
		lb.gap(lb.lostFrom, end, lb.lost)
		lb.lost = 0
	}
	for ; lb.drop < len(lb.drops); lb.drop++ {
		x := &lb.drops[lb.drop]
		if lb.counted {
			lb.gap(lb.p.last, min(max(x.Tick, lb.p.last), end), x.Entries+x.Exits)
		} else {
			lb.gap(x.Tick, x.Tick, x.Entries+x.Exits)
		}
	}
	lb.missingGaps()
	slices.SortStableFunc(lb.l.gaps, func(a, b gap) int { return cmp.Compare(a.start, b.start) })
	list := lb.l.gaps[:0]
	for _, g := range lb.l.gaps {
		if n := len(list); n > 0 && g.start <= list[n-1].end {
			list[n-1].end = max(list[n-1].end, g.end)
			list[n-1].events += g.events
			continue
		}
		list = append(list, g)
	}
	lb.l.gaps = list
}

// gap adds a gap, times in ticks.
func (lb *laneBuilder) gap(start, end, events uint64) {
	c := &lb.b.s.clock
	lb.l.gaps = append(lb.l.gaps, gap{c.rel(start), max(c.rel(start), c.rel(end)), events})
}

// timeAt is the time of an event, or of the last before it that has one.
func timeAt(events []reel.Event, i int, before uint64) uint64 {
	for ; i >= 0; i-- {
		if t := events[i].Time; t != 0 {
			return t
		}
	}
	return before
}
