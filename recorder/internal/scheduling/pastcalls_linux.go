package scheduling

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// pastCalls are the calls of a dump, thread by thread as the rings have them. What waits were for is found in the order of time, since what is
// remembered of calls that may have ended a wait is bounded, and in order.
type pastCalls struct {
	join  joining
	calls []pastCall
}

type pastCall struct {
	k *life
	c *waitcalls.Kept
}

func (m *Moments) newPastCalls() pastCalls { return pastCalls{join: m.newJoining()} }

// add adds the calls of a thread, which are in the order of their ends. Their descriptors are looked up at once, so that sockets can be looked for.
func (p *pastCalls) add(k *life, s *span, kept []waitcalls.Kept) {
	for i := range kept {
		c := &kept[i]
		object := p.join.object(k, c)
		if p.join.mayWait(c) {
			s.calls = append(s.calls, p.join.waitIn(k, c, object))
		}
		p.calls = append(p.calls, pastCall{k, c})
	}
}

// explain hands on what each wait was for, and who ended it, as far as that is known.
func (p *pastCalls) explain(waits []momentWait, spans map[*life]*span, found func(*momentWait)) {
	slices.SortStableFunc(p.calls, func(a, b pastCall) int { return cmp.Compare(a.c.End, b.c.End) })
	slices.SortStableFunc(waits, func(a, b momentWait) int { return cmp.Compare(a.x.to, b.x.to) })
	writer := func(k *life) *reel.ThreadWriter {
		if s := spans[k]; s != nil {
			return s.to
		}
		return nil
	}
	settles := p.join.watch.ticks(settleTime)
	next := 0
	for i := range waits {
		w := &waits[i]
		s := spans[w.k]
		if s == nil {
			continue
		}
		for ; next < len(p.calls) && p.calls[next].c.End <= w.x.to+settles; next++ {
			c := &p.calls[next]
			p.join.ends(c.k, c.c, p.join.object(c.k, c.c))
		}
		for len(s.calls) > 0 && s.calls[0].End < w.x.to {
			s.calls = s.calls[1:]
		}
		p.join.explain(w.k, s.calls[:min(len(s.calls), maxCalls)], &w.x, writer)
		found(w)
	}
}
