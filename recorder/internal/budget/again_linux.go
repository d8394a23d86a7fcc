package budget

import (
	"context"
	"time"
)

// isDue says whether all is to be switched on for a moment.
func (k *Keeper) isDue() bool {
	if len(k.off) == 0 {
		return false
	}
	for _, o := range k.off {
		if !o.out && time.Since(k.sampled) < countEvery {
			return false // it has just been
		}
	}
	since, every := time.Since(k.sampled), sampleEvery
	if k.c.CountOff {
		every = countEvery
	}
	least := k.sampleApart()
	return since >= max(every, least) || k.differs >= 3 && since >= max(sampleAtMost, least)
}

// sampleApart is how far samples are apart at least, so that they take a quarter of the budget: all that is recorded costs what it costs for
// as long as a sample takes, and a twelfth of that for half a second, until what is off again has no sites any more.
func (k *Keeper) sampleApart() time.Duration {
	const closing, residue, part = 500 * time.Millisecond, 1.0 / 12, 0.25
	if k.before.cpu == 0 {
		return 0
	}
	all := k.before.all * k.price / 1e9 / k.before.cpu // of the processor time
	return time.Duration(all * (float64(laterSample) + residue*float64(closing)) / (part * k.c.Share))
}

// again switches all on for a moment, and goes by that.
func (k *Keeper) again(ctx context.Context) error {
	out := map[uint32]bool{}
	var ids []uint32
	for id, o := range k.off {
		ids = append(ids, id)
		out[id] = o.out
	}
	if err := k.putBack(ctx, out); err != nil {
		return err
	}
	if err := k.reject(ctx, nil, k.withoutOut(ids), nil, k.c.Ticks()); err != nil {
		return err
	}
	if _, _, err := k.stretch(); err != nil {
		return err
	}
	if !sleep(ctx, laterSample) {
		return nil
	}
	list, l, err := k.stretch()
	if err != nil {
		return err
	}
	return k.sample(ctx, list, l)
}
