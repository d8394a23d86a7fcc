package budget

import (
	"context"
	"math"
	"slices"
	"time"
)

// look holds what is on against the budget.
func (k *Keeper) look(ctx context.Context, list []Function, l load) error {
	spare := k.c.Share * patience.Seconds()
	enough := false
	if list, l, enough = k.short.add(list, l, spare*1e9/k.price); !enough {
		return nil
	}
	// What functions have written before they went off may be read long after: it costs nothing now. Of what was dropped the same part is theirs.
	all := l.all - l.dropped
	counted := all
	list = slices.DeleteFunc(list, func(f Function) bool {
		is := k.off[f.ID] != nil
		if is {
			counted -= float64(f.Calls)
		}
		return is
	})
	if all > 0 {
		l.dropped *= counted / all
	}
	l.all = counted + l.dropped
	if k.isSettled() {
		k.gauge.add(list, l.cpu)
	}
	again := k.measure()
	k.known.saw(list)
	k.tell(list, l)
	k.recent.add(list, l)
	k.tellNamed(list, l)
	spent := l.all * k.price / 1e9
	k.mu.Lock()
	k.stats.Measured = k.second.add(spending{k.tick, min(spent, l.cpu), l.cpu}, k.c.TicksPerSecond) // it is part of what the process has used
	k.stats.Price, k.stats.Sure = k.price, k.stats.Measured*k.sure()/k.price
	k.mu.Unlock()
	if k.debt = max(k.debt+spent-most*k.c.Share*l.cpu, -spare); k.debt <= spare {
		const much, atMost = 1.25, 2 * time.Second
		if again || (k.price > k.chosenAt*much || k.price*much < k.chosenAt) && time.Since(k.chosen) > atMost {
			k.bySample = false
			return k.choose(ctx, false)
		}
		return nil
	}
	// More is called now than was when all was on.
	k.bySample, k.debt = k.bySample && time.Since(k.sampled) < unsettled, 0
	var ids []uint32
	rates := map[uint32]float64{}
	now := time.Now()
	rejected := together{at: map[uint32]int{}}
	part := 1.0
	if now.Sub(k.excess) < unsettled { // that much was left out just now, and it isn't enough: work of a new kind goes on to call others
		part = tighter
	}
	k.excess = now
	reject := func(list []Function, l load) {
		k.known.recall(list)
		if k.gauge.give(list, k.allowed(l)); k.bySample {
			k.gauge.keeps(list)
		}
		_, off := Choose(list, part*k.allowed(l))
		for i := range off {
			id := off[i].ID
			ids = append(ids, id)
			rates[id] = rate(&off[i], l.ticks)
			k.rejects(&off[i], off[i].Calls, l.cpu, now)
			rejected.add(scaled(&off[i], k.before.cpu/max(l.cpu, leastCPU.Seconds())))
		}
	}
	// What always stays may exceed the budget at each look. The others are judged by so many of these then that their calls tell something.
	named := float64(callsOfNamed(list)) > part*k.allowed(l)
	if !named {
		reject(list, l)
	}
	gone := map[uint32]bool{}
	for _, id := range ids {
		gone[id] = true
	}
	if lately, l := k.recent.sum(func(id uint32) bool { return k.off[id] == nil && !gone[id] }); !named || l.cpu >= namedCPU || len(k.recent.lists) == recentMost {
		reject(lately, l)
	}
	k.gauge.without(ids)
	err := k.reject(ctx, ids, nil, rates, k.c.Ticks())
	k.shares(rejected.all)
	return err
}

// scaled is what a function's calls come to in so many times the time.
func scaled(f *Function, times float64) *Function {
	s := *f
	s.Calls, s.Self = uint64(float64(f.Calls)*times), f.Self*times
	return &s
}

// shares says which share of the calls and of the time is recorded, by the last sample and functions that were rejected since, as they are
// in as much processor time.
func (k *Keeper) shares(rejected []Function) {
	t := together{at: map[uint32]int{}}
	for i := range k.all {
		t.add(&k.all[i])
	}
	for i := range rejected {
		f := &rejected[i]
		if at, met := t.at[f.ID]; met {
			t.all[at].Calls, t.all[at].Self = max(t.all[at].Calls, f.Calls), max(t.all[at].Self, f.Self)
		} else {
			t.add(f)
		}
	}
	var on, off []Function
	for _, f := range t.all {
		if k.off[f.ID] == nil {
			on = append(on, f)
		} else {
			off = append(off, f)
		}
	}
	calls, time := Shares(on, off)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stats.Calls, k.stats.Time = min(k.stats.Calls, calls), min(k.stats.Time, time)
}

// kindOfLoad gathers which functions are called, over some stretches.
type kindOfLoad struct {
	calls map[uint32]uint64
	cpu   float64
	since time.Time
}

// tell notices when other functions are called than before.
func (k *Keeper) tell(list []Function, l load) {
	n := &k.now
	if n.calls == nil {
		n.calls, n.since = map[uint32]uint64{}, time.Now()
	}
	for i := range list {
		n.calls[list[i].ID] += list[i].Calls
	}
	if n.cpu += l.cpu; n.cpu < kind.Seconds() && time.Since(n.since) < kindAtMost {
		return
	}
	var all []Function
	for id, calls := range n.calls {
		all = append(all, Function{ID: id, Calls: calls})
	}
	k.now = kindOfLoad{}
	if k.usual == nil {
		k.usual = all
	}
	if k.differs++; distance(k.usual, all) < changed {
		k.differs = 0
	}
}

// isSettled says whether what is off is out of the text, and what is on was chosen by the last sample.
func (k *Keeper) isSettled() bool {
	for _, o := range k.off {
		if !o.out && !o.stuck {
			return false
		}
	}
	return len(k.off) > 0 && k.bySample
}

// measure goes by what the gauge says a call costs, once it does. again says that it is to be chosen anew, since the gauge has taken room.
func (k *Keeper) measure() (again bool) {
	if !k.isSettled() {
		return false
	}
	if m, ok := k.gauge.measured(); ok {
		k.thought, k.isMeasured = k.was.with(m), true
		k.price = k.thought.price()
		if !k.gauge.done {
			k.gauge.done = true
			return k.gauge.calls > k.allowed(k.before)/4
		}
	}
	return false
}

// sure is the standard error of the price, 0 as long as that isn't measured.
func (k *Keeper) sure() float64 {
	if !k.isMeasured {
		return 0
	}
	return k.thought.sd * doubt
}

// distance is by how much two loads differ: 0 if each function has the same share of the calls, 1 if none is in both.
func distance(a, b []Function) float64 {
	share := map[uint32]float64{}
	sum := func(list []Function) (n float64) {
		for i := range list {
			n += float64(list[i].Calls)
		}
		return max(n, 1)
	}
	na, nb := sum(a), sum(b)
	for i := range a {
		share[a[i].ID] += float64(a[i].Calls) / na
	}
	for i := range b {
		share[b[i].ID] -= float64(b[i].Calls) / nb
	}
	d := 0.0
	for _, x := range share {
		d += math.Abs(x)
	}
	return d / 2
}
