package sampler

import (
	"context"
	"errors"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// sample is one look at a thread that stands.
type sample struct {
	frames   []Frame
	blockage blockage
	complete bool
	stopped  bool // the thread was, for it
}

// take takes a stack: without stopping the thread where it waits, and not again when it
// still does.
func (w *stallDetector) take(ctx context.Context, a *process.Activity) (*sample, error) {
	if a.Waiting != nil {
		// A stop is for the rest of a stack that the registers of a wait do not lead to,
		// and once in a wait at most.
		if s, still := w.takeWaiting(a); still && (s.complete || s.stopped || a.State != 'S' || a.Waiting.StartsOver()) {
			return s, nil
		}
	}
	if a.State == 't' {
		w.sampleIsLast = false
		w.lastSample = sample{blockage: blockage{StallStopped, neverRest}}
		return &w.lastSample, nil
	}
	w.stopped = true
	end, err := w.stacks.stopped(ctx, w.o.TID)
	switch {
	case err == nil:
		w.keep(a, end).stopped = true
		w.sampleIsLast = w.sampleIsLast && len(w.stacks.frames) > 0 && w.stacks.frames[0].SP == a.Waiting.SP
		return &w.lastSample, nil
	case errors.Is(err, process.ErrTraced):
		w.lastSample = sample{blockage: blockage{StallStopped, neverRest}}
	case errors.Is(err, process.ErrStopTimeout):
		w.lastSample = sample{blockage: blockage{StallDisk, neverRest}}
	case errors.Is(err, process.ErrReleased), errors.Is(err, process.ErrNoProcess), errors.Is(err, process.ErrExec), ctx.Err() != nil:
		w.lastSample = sample{blockage: w.blockage(a, nil)} // the next look sees what is there
	default:
		return nil, err
	}
	w.sampleIsLast = false
	return &w.lastSample, nil
}

// takeWaiting walks a thread where it waits. It says whether the thread has waited there
// all the time: what was read is of no use otherwise.
func (w *stallDetector) takeWaiting(a *process.Activity) (s *sample, still bool) {
	if w.sampleIsLast && w.stillThere(a) {
		return &w.lastSample, true
	}
	end := w.stacks.waiting(a.Waiting)
	after, err := w.p.Activity(w.o.TID)
	if err != nil || after.Waiting == nil || *after.Waiting != *a.Waiting || after.Blocked != a.Blocked {
		w.sampleIsLast = false
		return nil, false
	}
	return w.keep(a, end), true
}

// switchesOfStop is how often a thread that waits gives up the processor when we stop it:
// in the stop, and when it goes on with its wait. The number of what it goes on with may
// be another one (restart_syscall), and its arguments gone.
const switchesOfStop = 2

// stillThere says whether the thread has waited where the last sample was taken ever since.
func (w *stallDetector) stillThere(a *process.Activity) bool {
	if !w.lastSample.stopped {
		return w.lastAt == *a.Waiting && w.lastBlocked == a.Blocked
	}
	return a.Waiting.InSyscall && w.lastAt.SP == a.Waiting.SP && w.lastAt.PC == a.Waiting.PC && a.Blocked-w.lastBlocked <= switchesOfStop
}

// keep makes a sample of the stack that was just walked.
func (w *stallDetector) keep(a *process.Activity, end unwind.End) *sample {
	frames := w.stacks.space.frames(w.stacks.frames, &w.stacks.o)
	w.lastSample = sample{frames: frames, blockage: w.blockage(a, frames), complete: end.Complete()}
	w.sampleIsLast = a.Waiting != nil
	if w.sampleIsLast {
		w.lastAt, w.lastBlocked = *a.Waiting, a.Blocked
	}
	return &w.lastSample
}

func (w *stallDetector) blockage(a *process.Activity, frames []Frame) blockage {
	if a.State != 'R' && (a.Waiting != nil || a.State == 'T' || a.State == 't') {
		return blockageOf(a, w.p, frames)
	}
	if starved(&w.before, a, w.lookTime.Sub(w.beforeTime)) {
		return blockage{StallStarved, neverRest}
	}
	return blockage{StallRunning, neverRest}
}

// starved says whether a thread got less than a fifth of the time for which it was ready
// to run: what it gets on a machine that is merely busy is no reason. How long it was
// queued is counted only once it runs, and the time that a hypervisor took never is; but
// if it has not waited, it was ready all the time.
func starved(before, now *process.Activity, between time.Duration) bool {
	const times = 4
	ran, queued := now.CPU-before.CPU, now.Queued-before.Queued
	if now.Blocked == before.Blocked && before.State == 'R' {
		queued = max(queued, between-ran)
	}
	return queued > times*ran && now.CPU > 0 // kernels may be built without these counts
}
