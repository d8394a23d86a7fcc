package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/callreel/callreel/internal/glob"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/budget"
	"github.com/callreel/callreel/recorder/internal/probes"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// checkTogether refuses options that don't go together.
func (o *Options) checkTogether() error { return errors.Join(o.checkImports(), o.checkBudget()) }

// checkBudget refuses what a budget doesn't go with.
func (o *Options) checkBudget() error {
	b := &o.Budget
	switch {
	case b.Share == 0 && (len(b.Keep) > 0 || b.CountOff):
		return fmt.Errorf("callreel: %w: functions are kept and counted by a budget, and there is none", ErrRefused)
	case b.Share == 0:
		return nil
	case b.Share < LeastBudget || b.Share > 1:
		return fmt.Errorf("callreel: %w: a budget of %g %%: give %g to 100", ErrRefused, 100*b.Share, 100*LeastBudget)
	case o.Follow:
		return fmt.Errorf("callreel: %w: a budget is for one process: it doesn't go with following others", ErrRefused)
	case o.Filters.Min > 0 || o.needsAreas():
		return fmt.Errorf("callreel: %w: a budget doesn't go with filters that decide on each call", ErrRefused)
	case o.Clock != reel.ClockFull:
		return fmt.Errorf("callreel: %w: a budget needs the times of all events", ErrRefused)
	}
	return nil
}

// keepsByName says which functions a budget leaves alone.
func (r *recording) keepsByName() func(fn *stub.Probe) bool {
	keep := r.opt.Budget.Keep
	return func(fn *stub.Probe) bool {
		return r.captures.Wants(fn.Names()) || len(keep) > 0 && glob.Any(keep, nil, glob.Spellings(fn.Names()))
	}
}

// newTally returns what a budget counts by, nil if there is none.
func (r *recording) newTally() *budget.Tally {
	if r.opt.Budget.Share == 0 {
		return nil
	}
	r.stillOff = map[uint32]uint64{}
	r.tally = budget.NewTally(r.isGo(), ring.Ticks())
	return r.tally
}

// keepBudget keeps the recording within its budget until stop is called.
func (r *recording) keepBudget(ctx context.Context) (stop func()) {
	if r.tally == nil {
		return func() {}
	}
	var rejecting budget.Probes = r.switches
	if r.isGo() {
		rejecting = probes.NewUnswitched(r.s, r.keepsByName())
	} else if err := r.switches.CanReject(); err != nil {
		r.notice("the budget can't be kept: %v", err)
		return func() {}
	}
	ctx, end := context.WithCancel(ctx)
	k := budget.New(budget.Config{Share: r.opt.Budget.Share, Sites: r.s, Probes: rejecting, InLoop: r.switches.Soon, Tally: r.tally, CPU: func() (time.Duration, error) { return process.CPUTime(r.pid()) },
		Ticks: ring.Ticks, TicksPerSecond: r.set.TicksPerSecond, CountOff: r.opt.Budget.CountOff, Off: r.wereOff, Notice: r.notice})
	r.offMu.Lock()
	r.keeper = k
	r.offMu.Unlock()
	overdue := r.watchOverdue(ctx)
	var running sync.WaitGroup
	running.Go(func() { k.Run(ctx) })
	running.Go(func() { r.tellBudget(ctx, k) })
	return func() {
		end()
		running.Wait()
		if overdue != nil {
			overdue.Close()
		}
		s := k.Stats()
		if err := r.first.out.budget(budgetOf(s)); err != nil {
			r.notice("how the budget was kept can't be written: %v", err)
		}
		r.result.Budget = &BudgetKept{Wanted: s.Wanted, Measured: s.Measured, Sure: s.Sure, Price: s.Price, Functions: s.Off, Sites: s.Removed, CallsShare: s.Calls,
			TimeShare: s.Time, Samples: s.Samples, Stops: s.Stops, Stopped: s.Stopped, LongestStop: s.Longest}
	}
}

// tellBudget tells a destination that wants to know how the budget is kept, until ctx ends.
func (r *recording) tellBudget(ctx context.Context, k *budget.Keeper) {
	const every = 250 * time.Millisecond
	to := r.first.out.budgetTaker()
	if to == nil {
		return
	}
	for {
		if err := to.Budget(budgetOf(k.Stats())); err != nil {
			r.notice("how the budget is kept can't be told: %v", err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// maxOff bounds how many times in which functions were off an armed recording keeps, the latest, at 32 bytes each.
const maxOff = 1 << 17

// wereOff notes when functions were off. To is 0 for those that have just been switched off.
func (r *recording) wereOff(list []budget.Off) {
	if r.opt.Armed != nil {
		r.keepOff(list)
		return
	}
	ids := make([]uint32, len(list))
	for i := range list {
		ids[i] = list[i].ID
	}
	ids, err := r.functions.IDsOf(ids)
	if err == nil {
		var offs []FunctionOff
		for i, o := range list {
			if ids[i] != 0 {
				offs = append(offs, FunctionOff{reel.Off{Function: ids[i], From: o.From, To: o.To, Estimated: o.Estimated}, o.Rate * float64(r.set.TicksPerSecond), o.Last})
			}
		}
		err = r.first.out.off(offs)
	}
	if err != nil {
		r.notice("when functions were off can't be written: %v", err)
	}
}

// keepOff keeps it for dumps.
func (r *recording) keepOff(list []budget.Off) {
	r.offMu.Lock()
	defer r.offMu.Unlock()
	for _, o := range list {
		if o.To == 0 {
			r.stillOff[o.ID] = o.From
			continue
		}
		delete(r.stillOff, o.ID)
		if len(r.wasOff) >= 2*maxOff {
			r.wasOff = slices.Delete(r.wasOff, 0, maxOff)
		}
		r.wasOff = append(r.wasOff, o)
	}
}

// offWithin are the times within a window in which functions were off, by their IDs.
func (r *recording) offWithin(from, to uint64) (list []reel.Off) {
	r.offMu.Lock()
	defer r.offMu.Unlock()
	for _, o := range r.wasOff {
		if o.From <= to && o.To >= from {
			list = append(list, reel.Off{Function: o.ID, From: max(o.From, from), To: min(o.To, to)})
		}
	}
	for id, since := range r.stillOff {
		if since <= to {
			list = append(list, reel.Off{Function: id, From: max(since, from), To: to})
		}
	}
	return list
}

// budgetOf is what a reel says of a budget.
func budgetOf(s budget.Stats) reel.Budget {
	b := reel.Budget{Wanted: s.Wanted, Measured: s.Measured, Uncertainty: s.Sure, FunctionsOff: uint64(s.Off), SitesRemoved: uint64(max(s.Removed, 0))}
	if s.Samples > 0 {
		b.CallsShare, b.TimeShare = min(s.Calls, 1), min(s.Time, 1)
	}
	return b
}

// budgetNow is what there is to say of the budget now, if there is one.
func (r *recording) budgetNow() (b reel.Budget, ok bool) {
	r.offMu.Lock()
	defer r.offMu.Unlock()
	if r.keeper == nil {
		return b, false
	}
	return budgetOf(r.keeper.Stats()), true
}
