package why

import (
	"context"
	"math"
)

// A machine has hiccups: interrupts, a timer that is late, a virtual processor that its host runs late. Such a thing lengthens one stretch of
// work or of waiting, wherever it hits, and adds neither calls nor paths.
const (
	// leastOnce is what a cause that could be a hiccup has to come to, in nanoseconds, if hardly any other slow call has it, and leastAgain
	// if several have.
	leastOnce  = 2e6
	leastAgain = 1e6
	// oftenCalls is how many slow calls have it then, this one among them, and mostAgain how many are looked at.
	oftenCalls = 3
	mostAgain  = 12
)

// maybeHiccup says whether a cause may be the machine's doing. A wait in which the one that was waited for worked is none.
func (c *Cause) maybeHiccup() bool {
	if c.ExcessNS >= leastOnce || c.Kind != SlowerCalls && c.Kind != Self {
		return false
	}
	return !c.forWork()
}

// again knows the other slow calls of the function.
type again struct {
	x      *explainer
	a      *aligned
	slow   []ref // that are explained
	read   bool
	others []placed
}

// often says whether several slow calls have spent as much in a place, or nearly: more of them than hiccups would hit there, as they hit
// wherever time is spent, or for longer than they take.
func (g *again) often(ctx context.Context, c *Cause, p *place, marks []bool) bool {
	if !g.read {
		g.read = true
		g.readOthers(ctx)
	}
	least := p.picked(g.a.slow.spentIn(marks)) - p.excess/2
	k := 0
	for i := range g.others {
		if p.picked(g.others[i].spentIn(marks)) >= least {
			k++
		}
	}
	if k+1 < oftenCalls {
		return false
	}
	return c.ExcessNS >= leastAgain || chanceOf(k, len(g.others), g.a.usualShare(p, marks)) < chance
}

// picked is what of a time counts for a place.
func (p *place) picked(s states) int64 {
	if p.state < 0 {
		return int64(s.sum())
	}
	return int64(s[p.state])
}

// usualShare is the part of the peers' time, of the place's state, that they spend in a place.
func (a *aligned) usualShare(p *place, marks []bool) float64 {
	here, all := int64(0), int64(0)
	for i := range a.peers {
		here += p.picked(a.peers[i].spentIn(marks))
		all += p.picked(a.peers[i].total())
	}
	return (float64(here) + 1) / (float64(all) + 1)
}

// chanceOf is how likely it is that of n events k or more fall where a share of them does.
func chanceOf(k, n int, share float64) float64 {
	p, rest := 0.0, max(0, 1-share)
	choose := 1.0
	for i := range n + 1 {
		if i >= k {
			p += choose * math.Pow(share, float64(i)) * math.Pow(rest, float64(n-i))
		}
		choose *= float64(n-i) / float64(i+1)
	}
	return min(p, 1)
}

func (g *again) readOthers(ctx context.Context) {
	r := &g.a.slow.ref
	list := slowLike(r, g.a.median, g.x.found.found[r.fn], g.slow)[1:]
	list = list[:min(len(list), mostAgain)]
	g.others = placeAll(replay(ctx, g.x.f, list, replayed{limit: peerNodes, sampling: g.x.sampling(list, peersEvents)}, g.x.o.workers()), list)
	for i := range g.others {
		g.a.place(&g.others[i])
	}
}
