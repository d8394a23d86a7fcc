package sampler

import (
	"context"
	"time"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/unwind"
)

// Glance takes one thread's stack as it is now, innermost frame first, without names. A thread that waits in the kernel isn't stopped for
// it, unless its stack can't be walked without registers that only a stop tells and a stop does no harm. One that runs is stopped for some
// tens of microseconds. It returns no frames where the stack could not be walked to its outermost frame, or the thread went on meanwhile.
// The frames are valid until the next call. wait says for the how manieth time the thread waited then; 0 where it ran, or that isn't known.
func (h *Holder) Glance(ctx context.Context, tid int) (frames []unwind.Frame, wait uint64, err error) {
	l := h.l
	info, err := l.p.ThreadInfo(tid)
	if err != nil {
		return nil, 0, err
	}
	l.outdated, l.budget = false, maxFrames
	switch info.State {
	case 'R':
	case 'S', 'D':
		frames, wait, settled, err := l.waits(info)
		if settled || err != nil {
			return frames, wait, err
		}
	default:
		return nil, 0, nil
	}
	read := false
	err = l.p.EachThread(ctx, process.StopOptions{Timeout: stopTimeout}, []int{tid},
		func(t *process.Thread, err error) error {
			read = err == nil && l.read(t) == nil
			return nil
		}, func(int, time.Duration) {})
	if err != nil || !read {
		return nil, 0, err
	}
	snapshot := unwind.Snapshot{Regs: registers(&l.regs), Stack: l.stack, Addr: l.from, Memory: memory{l.p}}
	var end unwind.End
	if l.frames, end = l.walker.Walk(&snapshot, l.frames[:0]); !end.Complete() {
		return nil, 0, nil
	}
	return l.frames, 0, nil
}

// waits walks a thread that waits. settled is false where it has to be stopped for that, and may be.
func (l *live) waits(info process.ThreadInfo) (frames []unwind.Frame, wait uint64, settled bool, err error) {
	at, err := l.p.WaitingAt(info.TID)
	if err != nil {
		return nil, 0, info.State == 'D', nil // it runs, as a rule
	}
	blocked, err := l.p.Blocked(info.TID)
	if err != nil {
		return nil, 0, true, err
	}
	end, same := l.walkWait(info.TID, &at, blocked)
	switch {
	case !same:
		return nil, 0, true, nil
	case end.Complete():
		return l.frames, blocked, true, nil
	}
	return nil, 0, info.State == 'D' || at.StartsOver(), nil
}

// walkWait is walkWaiting of a thread that had been blocked so often when it was read where it waits. It says whether it is still the same wait:
// else what was walked may be of two.
func (l *live) walkWait(tid int, at *process.Waiting, blocked uint64) (end unwind.End, same bool) {
	end = l.walkWaiting(at)
	if !end.Complete() && l.changed() {
		end = l.walkWaiting(at)
	}
	if after, err := l.p.WaitingAt(tid); err != nil || after != *at {
		return end, false
	}
	now, err := l.p.Blocked(tid)
	return end, err == nil && now == blocked
}
