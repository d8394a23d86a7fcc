package budget

import (
	"context"
	"time"
)

// first takes the first sample. Of a process that rests it is of what it does when it begins to work.
func (k *Keeper) first(ctx context.Context) error {
	if !sleep(ctx, firstSample) {
		return nil
	}
	for {
		used, err := k.c.CPU()
		if err != nil {
			return err
		}
		if used-k.cpu >= leastFirst {
			break
		}
		if k.wait(ctx, idleStretch) {
			sleep(ctx, sampleStep)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	list, l, err := k.stretch()
	if err != nil {
		return err
	}
	return k.sample(ctx, list, l)
}

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

// again switches all on for a moment, but for floods that are held, and goes by that.
func (k *Keeper) again(ctx context.Context) error {
	out, rates := map[uint32]bool{}, map[uint32]float64{}
	var ids []uint32
	for id, o := range k.off {
		if k.known.isHeldFlood(id, time.Now(), k.cpu) {
			continue
		}
		ids = append(ids, id)
		out[id], rates[id] = o.out, o.rate
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
	for waited := time.Duration(0); waited < sampleAtLongest; waited += sampleStep {
		if !sleep(ctx, sampleStep) {
			return nil
		}
		if used, err := k.c.CPU(); err != nil {
			return err
		} else if waited+sampleStep >= laterSample && used-k.cpu >= leastSample {
			break
		}
	}
	list, l, err := k.stretch()
	if err != nil {
		return err
	}
	if l.cpu < leastSample.Seconds() {
		return k.asBefore(ctx, rates)
	}
	return k.sample(ctx, list, l)
}

// asBefore switches off again what was off, by its rates, when all was on and nothing could be seen.
func (k *Keeper) asBefore(ctx context.Context, rates map[uint32]float64) error {
	k.sampled, k.differs = time.Now(), 0
	var off []uint32
	for id := range rates {
		if k.off[id] == nil {
			off = append(off, id)
		}
	}
	return k.reject(ctx, off, nil, rates, k.c.Ticks())
}
