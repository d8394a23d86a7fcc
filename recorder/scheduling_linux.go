package recorder

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/collect"
	"github.com/callreel/callreel/recorder/internal/scheduling"
	"github.com/callreel/callreel/recorder/internal/waitcalls"
	"github.com/callreel/callreel/reel"
)

// prepareScheduler gets the kernel ready to tell what the scheduler does.
func (r *recording) prepareScheduler(ctx context.Context) {
	opt := &r.opt
	if opt.Scheduling != SchedulingOff && opt.To == nil && opt.Clock != reel.ClockNone {
		r.opening = scheduling.Prepare(ctx, opt.Follow)
	}
}

// newWaitCalls returns what says of which functions arguments are kept, so that it is known what threads waited for; nil if that is of no use.
func (r *recording) newWaitCalls() *waitcalls.Set {
	opt := &r.opt
	if r.first.opening == nil || opt.Clock != reel.ClockFull || r.isGo() {
		return nil
	}
	// The room for arguments is of addresses, hardly of memory; who has few addresses gets none.
	var limit unix.Rlimit
	if err := unix.Prlimit(r.pid(), unix.RLIMIT_AS, nil, &limit); err != nil || limit.Cur != unix.RLIM_INFINITY {
		return nil
	}
	return waitcalls.New(r.clock.ticksPerSecond())
}

// watchScheduler begins to watch what the scheduler does with the process's threads, before there are probes in it: so nothing is missing
// of what follows.
func (r *recording) watchScheduler(ctx context.Context) (err error) {
	if r.isCoupled() && !r.isFirst() && r.watch != nil {
		if err := r.watch.Also(r.pid()); err != nil {
			r.notice("when threads of process %d run and wait can't be recorded: %v", r.pid(), err)
		}
	}
	if !r.isFirst() || r.opening == nil {
		return nil
	}
	if r.watch, err = r.opening.Watch(ctx, r.pid(), r.set.TicksPerSecond); err != nil {
		if errors.Is(err, process.ErrNoProcess) || ctx.Err() != nil {
			return err
		}
		r.notice("when threads run and wait can't be recorded: %v", err)
		r.watch = nil
		return nil
	}
	if r.watch.SumsOnly() {
		r.notice("when threads run and wait can't be recorded here, but for sums: that takes perf events, which a container's seccomp profile, " +
			"or kernel.perf_event_paranoid above 2, forbids; with CAP_PERFMON it works; --no-sched leaves it out")
	}
	return nil
}

// endScheduling writes what there is up to the end of the recording, and says what it came to.
func (r *recording) endScheduling() error {
	if r.watch == nil {
		return nil
	}
	err := r.watch.Finish()
	about, counts := r.watch.About(), r.watch.Counts()
	r.result.Scheduling = &Scheduling{Source: about.Source, Reason: about.Reason, Switches: counts.Switches, Lost: counts.Lost, Waits: counts.Waits}
	return err
}

// asThreadSink makes a thread of the reel one that takes calls.
func asThreadSink(t *scheduling.Thread, err error) (collect.ThreadSink, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}
