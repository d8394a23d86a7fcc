package why

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/callreel/callreel/reel"
)

const (
	maxFast      = 400  // ordinary calls whose values are looked at
	maxSlow      = 64   // slow ones
	maxValued    = 8    // functions whose values are looked at
	significance = 0.01 // below which chance is ruled out, after correction for how many values were tried
)

// trait is something that a call has or hasn't, by what it is of.
type trait struct {
	what, value string
	number      float64 // of values that are numbers
	isNumber    bool
}

// distinguish finds what sets the calls that are slow like this one apart from fast ones.
func (x *explainer) distinguish(a *aligned, peers *peerSet, p *population, chosen []ref) []Difference {
	slow := slowLike(&a.slow.ref, a.median, p, chosen)
	var fast []ref
	if len(peers.durations) == 0 {
		return nil
	}
	high := rank(peers.durations, 0.8)
	for _, r := range p.all.list {
		if r.duration() <= high && !isOne(&r, slow) {
			fast = append(fast, r)
		}
	}
	// The list goes by threads: a part of it that isn't even would have few of them.
	fast = evenly(fast, maxFast)
	if len(fast) < fewPeers {
		return nil
	}
	valued := x.valued(a)
	of := func(list []ref) (all [][]trait) {
		for i := range list {
			all = append(all, x.traits(&list[i], valued))
		}
		return all
	}
	return differences(of(slow), of(fast))
}

// slowLike are the calls that took at least half as much longer as one did.
func slowLike(r *ref, median uint64, p *population, chosen []ref) []ref {
	least := median + (r.duration()-min(r.duration(), median))/2
	list := []ref{*r}
	for _, q := range p.top.list {
		if q.duration() >= least && len(list) < maxSlow && !isOne(&q, list) {
			list = append(list, q)
		}
	}
	for _, q := range chosen {
		if q.fn == r.fn && q.duration() >= least && len(list) < maxSlow && !isOne(&q, list) {
			list = append(list, q)
		}
	}
	return list
}

// valued are the functions on the call's paths whose values were recorded.
func (x *explainer) valued(a *aligned) (fns []uint32) {
	if !x.f.HasArguments() {
		return nil
	}
	for i := range a.slow.nodes {
		fn := a.slow.nodes[i].fn
		if len(fns) < maxValued && !slices.Contains(fns, fn) && (x.f.Arguments(fn, false) != nil || x.f.Arguments(fn, true) != nil) {
			fns = append(fns, fn)
		}
	}
	return fns
}

// traits are what a call has.
func (x *explainer) traits(r *ref, valued []uint32) (list []trait) {
	if r.goroutine == 0 {
		list = append(list, trait{what: "thread", value: x.threads[r.thread].Name + " (" + strconv.Itoa(x.threads[r.thread].TID) + ")"})
	}
	for _, fn := range valued {
		for _, atReturn := range [...]bool{false, true} {
			from, to := r.start, r.end+1
			switch {
			case fn == r.fn && atReturn:
				from = r.end
			case fn == r.fn:
				to = r.start + 1
			}
			args := x.f.Arguments(fn, atReturn)
			if args == nil {
				continue
			}
			thread := r.thread
			if r.goroutine != 0 {
				thread = 0
			}
			values := x.f.ValuesBetween(fn, atReturn, thread, from, to)
			for i := 0; i < len(values) && i < len(args); i++ {
				list = append(list, x.valueTrait(fn, r.fn, atReturn, &args[i], values[i]))
			}
		}
	}
	return list
}

func (x *explainer) valueTrait(fn, of uint32, atReturn bool, a *reel.Argument, v reel.Value) trait {
	t := trait{what: "argument " + a.Name, value: a.Text(v)}
	if atReturn {
		t.what = "result"
		if a.Name != "return" {
			t.what += " " + a.Name
		}
	}
	if fn != of {
		t.what += " of " + x.name(fn)
	}
	if v.State != reel.ValueKnown {
		return t
	}
	switch a.Kind {
	case reel.ArgumentInt:
		t.number, t.isNumber = float64(int64(v.Bits)), true
	case reel.ArgumentUint:
		t.number, t.isNumber = float64(v.Bits), true
	case reel.ArgumentFloat:
		t.number = math.Float64frombits(v.Bits)
		t.isNumber = !math.IsNaN(t.number)
	case reel.ArgumentString:
		t.value = strconv.Quote(t.value)
	}
	return t
}

// differences tests which traits slow calls have and fast ones don't.
func differences(slow, fast [][]trait) []Difference {
	type key struct{ what, value string }
	in := func(calls [][]trait) map[key]int {
		n := map[key]int{}
		for _, c := range calls {
			for _, t := range c {
				n[key{t.what, t.value}]++
			}
		}
		return n
	}
	inSlow, inFast := in(slow), in(fast)
	var list []Difference
	tried := 0
	for k, n := range inSlow {
		if 2*n < len(slow) {
			continue
		}
		tried++
		list = append(list, Difference{What: k.what, Value: k.value, Slow: n, Fast: inFast[k], SlowOf: len(slow), FastOf: len(fast)})
	}
	for what, values := range numbers(slow) {
		others := numbers(fast)[what]
		if len(others) == 0 || 2*len(values) < len(slow) {
			continue
		}
		tried += 2
		least, most := slices.Min(values), slices.Max(values)
		above, below := 0, 0
		for _, v := range others {
			if v >= least {
				above++
			}
			if v <= most {
				below++
			}
		}
		text := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		if least != most {
			list = append(list, Difference{What: what, Value: "≥ " + text(least), Slow: len(values), Fast: above, SlowOf: len(slow), FastOf: len(fast)},
				Difference{What: what, Value: "≤ " + text(most), Slow: len(values), Fast: below, SlowOf: len(slow), FastOf: len(fast)})
		}
	}
	kept := list[:0]
	for _, d := range list {
		if d.P = min(1, float64(max(tried, 1))*atLeast(d.Slow, d.SlowOf, d.Slow+d.Fast, d.SlowOf+d.FastOf)); d.P < significance {
			kept = append(kept, d)
		}
	}
	slices.SortFunc(kept, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.P, b.P), cmp.Compare(a.What, b.What), cmp.Compare(a.Value, b.Value))
	})
	return kept[:min(len(kept), mostDifferences)]
}

// mostDifferences is how many are told.
const mostDifferences = 3

func numbers(calls [][]trait) map[string][]float64 {
	all := map[string][]float64{}
	for _, c := range calls {
		for _, t := range c {
			if t.isNumber {
				all[t.what] = append(all[t.what], t.number)
			}
		}
	}
	return all
}

// atLeast is how likely it is that of n calls drawn from all, of which have have something, k or more have it (Fisher's exact test, one-sided).
func atLeast(k, n, have, all int) float64 {
	choose := func(n, k int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	p := 0.0
	for i := k; i <= min(n, have); i++ {
		if n-i <= all-have {
			p += math.Exp(choose(have, i) + choose(all-have, n-i) - choose(all, n))
		}
	}
	return min(p, 1)
}

// said is a difference in words.
func (d *Difference) said() string {
	slow := fmt.Sprintf("in %d of %d slow calls", d.Slow, d.SlowOf)
	switch {
	case d.SlowOf == 1:
		slow = "in this slow call"
	case d.Slow == d.SlowOf:
		slow = fmt.Sprintf("in all %d slow calls", d.SlowOf)
	}
	fast := "none"
	if d.Fast > 0 {
		fast = strconv.Itoa(d.Fast)
	}
	return fmt.Sprintf("Its %s is %s %s, in %s of %d fast ones.", d.What, d.Value, slow, fast, d.FastOf)
}
