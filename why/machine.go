package why

import (
	"math"
	"slices"

	"github.com/callreel/callreel/reel"
)

// allSlower is by what factor a call ran slower in all places alike, 0 if it didn't: a machine whose clock, caches or memory others slow
// down does so everywhere.
func (a *aligned) allSlower() float64 {
	const run = int(reel.StateRunning)
	type one struct{ factor, weight float64 }
	var list []one
	whole, usual := 0.0, 0.0
	for i := range a.at {
		m := &a.at[i]
		whole += float64(m.spent[run])
		usual += float64(m.usual[run])
		if m.calls == 0 || m.peerCalls == 0 || m.usual[run] <= 0 || m.spent[run] == 0 {
			continue
		}
		each := float64(m.spent[run]) / float64(m.calls)
		list = append(list, one{math.Log(each / (float64(m.usual[run]) / m.peerCalls)), float64(m.usual[run])})
	}
	const places = 4 // fewer say little
	if len(list) < places || usual == 0 {
		return 0
	}
	slices.SortFunc(list, func(a, b one) int {
		switch {
		case a.factor < b.factor:
			return -1
		case a.factor > b.factor:
			return 1
		}
		return 0
	})
	total := 0.0
	for _, o := range list {
		total += o.weight
	}
	at := func(part float64) float64 {
		sum := 0.0
		for _, o := range list {
			if sum += o.weight; sum >= part*total {
				return o.factor
			}
		}
		return list[len(list)-1].factor
	}
	// Nearly all places have to agree, and together make up the whole.
	if mid := at(0.5); mid > math.Log(1.3) && at(0.15) > mid/2 && at(0.85) < mid*1.5 && total > 0.8*usual && whole < 2*usual*math.Exp(mid) {
		return math.Exp(mid)
	}
	return 0
}
