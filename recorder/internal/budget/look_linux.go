package budget

import (
	"context"
	"math"
	"slices"
	"time"
)

// look holds what is on against the budget.
func (k *Keeper) look(ctx context.Context, list []Function, l load) error {
	if l.cpu < leastCPU.Seconds() {
		return nil
	}
	on := map[uint32]bool{}
	for i := range k.all {
		if id := k.all[i].ID; k.off[id] == nil {
			on[id] = true
		}
	}
	for i := range list {
		if on[list[i].ID] {
			l.kept += float64(list[i].Calls)
		}
	}
	k.after = load{cpu: k.after.cpu + l.cpu, kept: k.after.kept + l.kept, all: k.after.all + l.all, dropped: k.after.dropped + l.dropped}
	k.measure()
	if k.usual == nil {
		k.usual = list
	}
	if k.differs++; distance(k.usual, list) < changed {
		k.differs = 0
	}
	share := l.all * k.price / 1e9 / l.cpu
	k.mu.Lock()
	if k.stats.Measured == 0 {
		k.stats.Measured = share
	}
	k.stats.Measured += (share - k.stats.Measured) / 5
	k.stats.Price, k.stats.Sure = k.price, k.stats.Measured*k.sure/k.price
	k.mu.Unlock()
	if k.over = share > k.c.Share; !k.over {
		const much, atMost = 1.25, 2 * time.Second
		if (k.price > k.chosenAt*much || k.price*much < k.chosenAt) && time.Since(k.chosen) > atMost {
			k.bySample = false
			return k.choose(ctx)
		}
		return nil
	}
	// More is called now than was when all was on.
	k.bySample = false
	_, off := Choose(slices.DeleteFunc(list, func(f Function) bool { return k.off[f.ID] != nil }), k.allowed(l))
	var ids []uint32
	rates := map[uint32]float64{}
	for i := range off {
		ids = append(ids, off[i].ID)
		rates[off[i].ID] = rate(&off[i], l.ticks)
	}
	return k.reject(ctx, ids, nil, rates, k.c.Ticks())
}

// measure goes by the price that the load before and since shows, once enough is known of it.
func (k *Keeper) measure() {
	const enough = 300 * time.Millisecond // of processor time, with the sites out
	if len(k.off) == 0 || k.after.cpu < enough.Seconds() || !k.bySample {
		return
	}
	for _, o := range k.off {
		if !o.out && !o.stuck {
			return
		}
	}
	ns, sure, ok := price(k.before, k.after)
	if !ok {
		return
	}
	k.price, k.sure = min(max(ns*doubt, leastPrice*doubt), mostPrice), sure
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
