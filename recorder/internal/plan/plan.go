package plan

import (
	"cmp"
	"context"
	"slices"

	"github.com/callreel/callreel/recorder/internal/hugepage"
)

// Plan decides for every function of the image how it can be probed. The functions come in the order of their
// addresses. Plan is to be called once.
func (im *Image) Plan(ctx context.Context) ([]Function, error) {
	defer im.forget()
	return im.processor.plan(im, ctx)
}

func (im *Image) plan(ctx context.Context) ([]Function, error) {
	if err := im.findChunks(ctx); err != nil {
		return nil, err
	}
	im.sweepAll()
	im.cutPieces()
	im.cover()
	if im.Go != nil {
		im.takeAssembly(assemblyAMD64())
	}
	im.markThunks()
	im.refuseData()
	im.claimTables()
	im.markCancellation()
	if err := im.markData(); err != nil {
		return nil, err
	}
	if err := im.markLandingPads(); err != nil {
		return nil, err
	}
	fns := im.join()
	im.markTables(fns)
	im.findSlots(im.references, im.callsOf)
	im.findMarks(fns, newPlanner(im, fns).placeMarks)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := hugepage.Make[Function](len(fns))
	each(len(fns), func() func(from, to int) {
		p := newPlanner(im, fns)
		p.slab = newSlab(len(fns))
		return func(from, to int) {
			for i := from; i < to; i++ {
				out[i] = im.describe(&fns[i])
				if im.MarksOnly {
					out[i].Reason = ReasonUnasked
					continue
				}
				p.plan(i, &out[i])
			}
		}
	})
	// Islands are shared between neighbours, so they are given out in one fixed order, to those that need them. A Go program has none:
	// its runtime looks up every PC at which a signal comes, and stops the program when it finds no entry for it, as in padding.
	im.again, im.islands = true, im.Go == nil
	im.understood = make([]bool, len(im.chunks))
	for i := range out {
		im.understood[im.entryOf(&fns[i]).owner] = out[i].Tier != TierNone
	}
	p := newPlanner(im, fns)
	for i := range out {
		switch out[i].Reason {
		case ReasonEntryShort, ReasonExitShort, ReasonPage, ReasonEntryTarget, ReasonLoop, ReasonCall, ReasonInstruction:
			again := out[i]
			if p.plan(i, &again); again.Tier != TierNone {
				out[i] = again
			}
		}
	}
	for i := range out {
		if f := &out[i]; f.Tier == TierNone && f.Hook != HookNone {
			if f.more == nil {
				f.more = &more{}
			}
			f.more.hookSite = p.hook(i)
		}
	}
	out = inOrder(out)
	im.settleSlots(out)
	return out, ctx.Err()
}

// inOrder returns the functions in the order of their addresses.
func inOrder(fns []Function) []Function {
	if slices.IsSortedFunc(fns, func(a, b Function) int { return cmp.Compare(a.Addr, b.Addr) }) {
		return fns
	}
	all := make([]placed, len(fns))
	for i := range fns {
		all[i] = placed{fns[i].Addr, i}
	}
	ordered := hugepage.Make[Function](len(fns))
	for i, p := range byPlace(all) {
		ordered[i] = fns[p.index]
	}
	return ordered
}
