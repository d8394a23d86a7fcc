package budget

import (
	"math"
	"testing"
)

// gauged is a sample in which function 5 makes 80 calls below it, for each of which it takes 40 ns more, and what it takes without them.
func gauged(ns float64) (all []Function, alone func(speed float64) []Function) {
	const calls, own = 1000, 9_000
	all = []Function{
		{ID: 4, Calls: 10, Ended: 10, Mean: 1e6, Beneath: 8_000}, // an event loop: so many requests at once, as there are
		{ID: 5, Calls: calls, Ended: calls, Mean: own + 80*ns, Beneath: 80},
		{ID: 6, Calls: calls, Ended: calls, Mean: 100, Beneath: 3},
		{ID: 7, Calls: 80 * calls, Ended: 80 * calls, Mean: 20},
	}
	return all, func(speed float64) []Function {
		return []Function{{ID: 4, Calls: 10, Ended: 10, Mean: 2e6, Beneath: 1}, {ID: 5, Calls: calls, Ended: calls, Mean: own / speed}}
	}
}

func TestThePriceOfACallIsMeasured(t *testing.T) {
	all, alone := gauged(40)
	var g gauge
	g.begin(all, 0.02, 1e6)
	if g.id != 5 {
		t.Fatalf("it is measured by function %d", g.id)
	}
	for i := range gaugeEnough {
		if m, ok := g.measured(); ok {
			t.Fatalf("%+v after %d stretches", m, i)
		}
		g.add(alone(1), 0.1)
	}
	if m, ok := g.measured(); !ok || m.ns < 39 || m.ns > 41 || m.sd > 5 {
		t.Errorf("%+v, %v", m, ok)
	}
	// A machine that is faster and slower in turns makes it less sure.
	g.begin(all, 0.02, 1e6)
	for i := range 10 {
		g.add(alone(1+0.2*float64(i%2)), 0.1)
	}
	if m, ok := g.measured(); !ok || m.sd < 15 || m.sd > 60 {
		t.Errorf("%+v, %v", m, ok)
	}
}

func TestThePriceIsMeasuredByNothingThatCantTell(t *testing.T) {
	all, alone := gauged(40)
	for name, g := range map[string]func(*gauge){
		"too much of the budget":    func(g *gauge) { g.begin(all, 0.02, 5) },
		"hardly any calls":          func(g *gauge) { g.begin(all[:1], 0.02, 1e6) },
		"no calls below":            func(g *gauge) { g.begin(all[3:], 0.02, 1e6) },
		"nothing was done any more": func(g *gauge) { g.begin(all, 0.02, 1e6) },
		"the same is called as was then": func(g *gauge) {
			g.begin(all, 0.02, 1e6)
			g.add(all, 1)
			g.add(all, 1)
			g.add(all, 1)
			g.add(all, 1)
			g.add(all, 1)
		},
		"a clock that stands still": func(g *gauge) {
			g.begin([]Function{{ID: 5, Calls: 1000, Ended: 1000, Beneath: 80}, all[3]}, 0.02, 1e6)
		},
		"no processor time":  func(g *gauge) { g.begin(all, 0, 1e6) },
		"it went off itself": func(g *gauge) { g.begin(all, 0.02, 1e6); g.without([]uint32{5}) },
	} {
		var it gauge
		g(&it)
		for range 2 * gaugeMost {
			if name == "nothing was done any more" {
				it.add(nil, 0.1)
			} else if name != "the same is called as was then" {
				it.add(alone(1), 0.1)
			}
		}
		if m, ok := it.measured(); ok {
			t.Errorf("%s: %+v", name, m)
		}
		if len(it.after) > gaugeMost {
			t.Errorf("%s: %d stretches are kept", name, len(it.after))
		}
	}
}

// Each estimate counts by how sure it is, and is less so later.
func TestAnEstimateCountsByHowSureItIs(t *testing.T) {
	e := estimate{60, 20}
	if m := e.with(estimate{30, 10}); math.Abs(m.ns-36) > 0.01 || math.Abs(m.sd-8.944) > 0.01 {
		t.Errorf("%+v", m)
	}
	if m := e.with(estimate{-100, 1000}); math.Abs(m.ns-60) > 0.1 {
		t.Errorf("%+v", m)
	}
	if m, other := (estimate{40, 3}).later(false), (estimate{40, 3}).later(true); m.sd <= 3 || other.sd <= m.sd || m.ns != 40 || other.sd > firstPrice.sd {
		t.Errorf("%+v, for another load %+v", m, other)
	}
	for range 100 {
		e = e.with(estimate{30, 5}).later(false)
	}
	if e.ns < 29.9 || e.ns > 30.1 || e.sd < 5 {
		t.Errorf("%+v: it must follow what comes", e)
	}
	for _, e := range []estimate{{-50, 1}, {1e9, 1}, {math.MaxFloat64, math.MaxFloat64}} {
		if p := e.price(); !(p >= leastPrice && p <= mostPrice) {
			t.Errorf("%+v: %v", e, p)
		}
	}
}
