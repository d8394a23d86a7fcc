package budget

import (
	"context"
	"slices"
	"time"
)

// allowed is how many of the calls that were counted in a stretch there may be.
func (k *Keeper) allowed(l load) float64 {
	calls := within * k.c.Share * l.cpu * 1e9 / k.price
	if l.dropped > 0 {
		calls *= 1 - l.dropped/l.all // as many of each, as far as that is known
	}
	return calls
}

// sample goes by a stretch in which all was on.
func (k *Keeper) sample(ctx context.Context, list []Function, l load) error {
	k.all, k.before, k.sampled = list, l, time.Now()
	k.mu.Lock()
	k.stats.Samples++
	k.mu.Unlock()
	k.bySample = true
	k.was = k.thought.later(k.differs > 0)
	k.gauge.begin(list, l.cpu, k.allowed(l))
	k.known.saw(list)
	return k.choose(ctx, true)
}

// choose chooses anew, by the last sample, and by what is known from before. Functions that were rejected since stay off, unless the sample is
// fresh.
func (k *Keeper) choose(ctx context.Context, fresh bool) error {
	now, at := k.c.Ticks(), time.Now()
	l := &k.before
	on, off := Choose(k.expected(fresh, at), k.allowed(*l))
	k.gauge.after, k.usual, k.differs, k.chosen, k.chosenAt = nil, nil, 0, at, k.price
	k.now, k.debt, k.short = kindOfLoad{}, 0, short{}
	is := map[uint32]bool{}
	for i := range off {
		is[off[i].ID] = true
	}
	calls := map[uint32]*Function{}
	for i := range k.all {
		f := &k.all[i]
		calls[f.ID] = f
	}
	var more, back []uint32
	out := map[uint32]bool{}
	for i := range off {
		if id := off[i].ID; k.off[id] == nil {
			more = append(more, id)
			k.rejects(calls[id], off[i].Calls, l.cpu, at)
		}
	}
	for id, o := range k.off {
		if !is[id] && (fresh || calls[id] != nil) {
			back = append(back, id)
			out[id] = o.out
		}
	}
	if err := k.putBack(ctx, out); err != nil {
		return err
	}
	back = k.withoutOut(back)
	share, time := Shares(on, off)
	k.mu.Lock()
	k.stats.Calls, k.stats.Time = share, time
	k.mu.Unlock()
	rates := map[uint32]float64{}
	for i := range off {
		rates[off[i].ID] = rate(&off[i], l.ticks)
	}
	return k.reject(ctx, more, back, rates, now)
}

// expected is what the last sample has, with what is known from before, as far as that is still expected.
func (k *Keeper) expected(fresh bool, now time.Time) []Function {
	list := slices.Clone(k.all)
	k.gauge.keeps(list)
	there := map[uint32]bool{}
	for i := range list {
		f := &list[i]
		there[f.ID] = true
		f.Calls = max(f.Calls, k.known.expected(f.ID, k.before.cpu, now, k.cpu))
	}
	if fresh {
		for id := range k.known {
			if n := k.known.unseen(id, k.before.cpu, now, k.cpu); n > 0 && !there[id] {
				list = append(list, Function{ID: id, Calls: n, Kept: k.stays[id] || k.c.Probes.Kept(id)})
			}
		}
	}
	k.known.recall(list)
	return list
}

// rejects notes that a function goes off. It doesn't count where the function was expected to be called much oftener than it was.
func (k *Keeper) rejects(f *Function, expected uint64, cpu float64, now time.Time) {
	const part = 4
	k.found = now
	if f != nil && f.Calls >= expected/part && cpu > 0 {
		k.known.rejected(f, cpu, k.price, now, k.cpu)
	}
}
