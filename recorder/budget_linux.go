package recorder

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/callreel/callreel/internal/glob"
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
	r.tally = budget.NewTally(r.isGo(), ring.Ticks())
	return r.tally
}

// keepBudget keeps the recording within its budget until stop is called.
func (r *recording) keepBudget(ctx context.Context) (stop func()) {
	if r.tally == nil {
		return func() {}
	}
	var rejecting interface {
		budget.Probes
		CanReject() error
	} = r.switches
	if r.isGo() {
		rejecting = probes.NewUnswitched(r.s, r.keepsByName())
	}
	if err := rejecting.CanReject(); err != nil {
		r.notice("the budget can't be kept: %v", err)
		return func() {}
	}
	ctx, end := context.WithCancel(ctx)
	k := budget.New(budget.Config{Share: r.opt.Budget.Share, Sites: r.s, Probes: rejecting, InLoop: r.switches.Soon, Tally: r.tally, CPU: r.s.Process.CPUTime,
		Ticks: ring.Ticks, TicksPerSecond: r.set.TicksPerSecond, CountOff: r.opt.Budget.CountOff, Off: r.wereOff, Notice: r.notice})
	var running sync.WaitGroup
	running.Go(func() { k.Run(ctx) })
	return func() {
		end()
		running.Wait()
		s := k.Stats()
		r.result.Budget = &BudgetKept{Wanted: s.Wanted, Measured: s.Measured, Sure: s.Sure, Price: s.Price, Functions: s.Off, Sites: s.Removed, CallsShare: s.Calls,
			TimeShare: s.Time, Samples: s.Samples, Stops: s.Stops, Stopped: s.Stopped, LongestStop: s.Longest}
	}
}

// wereOff notes when functions were off.
func (r *recording) wereOff(list []budget.Off) {
	r.offMu.Lock()
	defer r.offMu.Unlock()
	r.off = append(r.off, list...)
}
