package timeline

import (
	"context"
	"sort"
)

// maxCallers is how many callers of a call are listed, the innermost ones.
const maxCallers = 4096

// CallAt finds the call of a row that a time is in.
func (t *Timeline) CallAt(ctx context.Context, lane uint32, row int, at uint64) (Found, bool, error) {
	s := t.live.Load()
	if uint64(lane) >= uint64(len(s.lanes)) || ctx.Err() != nil {
		return Found{}, false, ctx.Err()
	}
	l := s.lanes[lane]
	k, ok := l.key(row)
	if !ok || len(l.segments) == 0 {
		return Found{}, false, nil
	}
	// Ticks may be shorter than nanoseconds: the last call that starts at the
	// same one is meant.
	after := s.clock.toTicks(at + 1)
	i := max(0, sort.Search(len(l.segments), func(i int) bool { return l.segments[i].start >= after })-1)
	c, ok := s.callBefore(l, i, k, after)
	if !ok {
		return Found{}, false, nil
	}
	if start := s.clock.toNS(c.start); start != at && s.clock.toNS(c.end) <= at {
		return Found{}, false, nil
	}
	return s.found(l, i, &c), true, ctx.Err()
}

// callBefore finds the last call of a row that starts before a time, of those
// that begin in a segment or are open where it begins.
func (s *snapshot) callBefore(l *lane, segment int, k rowKey, before uint64) (call, bool) {
	from, to := l.spansOf(segment)
	for i := from; i < to; i++ {
		if sp := &l.spans[i]; sp.key() == k && sp.start < before {
			return sp.call(), true
		}
	}
	if c := lastBefore(s.load(l, segment).row(k), before); c != nil {
		return *c, true
	}
	if i := l.openAt(&l.segments[segment], k); i >= 0 && l.spans[i].start < before {
		return l.spans[i].call(), true
	}
	return call{}, false
}

func (sp *span) call() call {
	return call{start: sp.start, end: sp.end, spent: spent(sp.inside, sp.flags), fn: sp.fn, row: sp.key()}
}

// found describes a call that a segment knows, with its callers.
func (s *snapshot) found(l *lane, segment int, c *call) Found {
	f := s.plain(l, c)
	first := max(0, f.Depth-maxCallers)
	around := make([]*call, f.Depth-first)
	note := func(x *call) {
		if d := x.key().depth(); x.key().stack() == f.Stack && d >= first && d < f.Depth && x.start <= c.start {
			if old := around[d-first]; old == nil || old.start <= x.start {
				around[d-first] = x
			}
		}
	}
	seg := &l.segments[segment]
	if f.Stack < len(seg.stacks) {
		for k := seg.stacks[f.Stack].top; k >= 0; k = l.spans[k].around {
			x := l.spans[k].call()
			note(&x)
		}
	}
	d := s.load(l, segment)
	for depth := first; depth < f.Depth; depth++ {
		if x := lastBefore(d.row(keyOf(f.Stack, depth)), c.start+1); x != nil {
			note(x)
		}
	}
	from, to := l.spansOf(segment)
	for k := from; k < to; k++ {
		x := l.spans[k].call()
		note(&x)
	}
	for _, x := range around {
		if x != nil {
			f.Callers = append(f.Callers, s.plain(l, x))
		}
	}
	return f
}

// plain describes a call without its callers.
func (s *snapshot) plain(l *lane, c *call) Found {
	f := Found{
		Lane: l.ID, Row: l.row(c.key()), Func: c.fn, Start: s.clock.toNS(c.start), Tick: c.start + s.clock.first,
		Depth: c.key().depth(), Stack: c.key().stack(), Flags: c.flags(),
	}
	f.Duration = s.clock.toNS(c.end) - f.Start
	f.Self = s.clock.toNS(c.end - c.start - min(c.inside(), c.end-c.start))
	return f
}
