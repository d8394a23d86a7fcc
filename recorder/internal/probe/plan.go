package probe

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// Plan decides for every function of the image how it can be probed. The functions come in the order of their
// addresses. Plan is to be called once.
func (im *Image) Plan(ctx context.Context) ([]Function, error) {
	if err := im.findChunks(); err != nil {
		return nil, err
	}
	im.sweepAll()
	im.cutPieces()
	im.markThunks()
	im.refuseData()
	im.markCancellation()
	if err := im.markData(); err != nil {
		return nil, err
	}
	if err := im.markLandingPads(); err != nil {
		return nil, err
	}
	fns := im.join()
	each(len(fns), func(i int) { im.markTables(&fns[i]) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]Function, len(fns))
	pool := sync.Pool{New: func() any { return &planner{im: im} }}
	each(len(fns), func(i int) {
		p := pool.Get().(*planner)
		out[i] = p.plan(&fns[i])
		pool.Put(p)
	})
	// Islands are shared between neighbours, so they are given out in one fixed order, to those that need them.
	im.islands = true
	p := &planner{im: im}
	for i := range out {
		switch out[i].Reason {
		case ReasonEntryShort, ReasonExitShort, ReasonPage, ReasonEntryTarget, ReasonLoop, ReasonCall:
			if again := p.plan(&fns[i]); again.Tier != TierNone {
				out[i] = again
			}
		}
	}
	for i := range out {
		if f := &out[i]; f.Tier == TierNone && f.Guard != GuardNone {
			f.guardSite = p.guard(&fns[i])
		}
	}
	slices.SortFunc(out, func(a, b Function) int { return cmp.Compare(a.Addr, b.Addr) })
	return out, ctx.Err()
}
