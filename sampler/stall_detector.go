package sampler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callreel/callreel/process"
)

// How often a thread is looked at.
const (
	// A short time between samples is worth its cost in short stalls only.
	sampleEvery     = 10 * time.Millisecond
	sampleLong      = 20 * time.Millisecond
	longStall       = time.Second
	looksInOver     = 4 // while the thread gets on
	retryBreakpoint = 10 * time.Second
	// Where a loop inside of a handler comes by the same place as the usual wait, and more
	// often, this many passages are looked at before the breakpoint lets itself go.
	nestedPassages = 8
	lastLook       = 2 * time.Second // that the last look may take
)

// stallDetector looks for stalls of one thread.
type stallDetector struct {
	p      *process.Process
	o      StallOptions
	report func(*Stall) error
	stacks *stallStacks
	habits habits

	passage      *process.Passage // armed on the way out of the usual wait
	nextPassage  time.Time        // no breakpoint is asked for before
	nested       bool             // all that the last passage saw was a loop inside of a handler
	noticed      bool
	before       process.Activity
	beforeTime   time.Time
	lookTime     time.Time // of the present look
	beforeUsual  bool      // it was at its usual wait
	progress     time.Time // since when it has not been seen to get on
	open         *openStall
	lastSample   sample
	lastAt       process.Waiting // where lastSample was taken, if the thread waited
	lastBlocked  uint64
	sampleIsLast bool
	stopped      bool // we have stopped the thread in this look
}

// openStall is what may become a Stall.
type openStall struct {
	tree    *callTree
	states  map[StallState]int
	samples int
	partial int
	told    bool // Begun has been
}

func newStallDetector(p *process.Process, o StallOptions, stacks *stallStacks, report func(*Stall) error) *stallDetector {
	now := time.Now()
	return &stallDetector{p: p, o: o, report: report, stacks: stacks, habits: habits{begun: now}, progress: now}
}

// run looks at the thread until it or ctx ends.
func (w *stallDetector) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return w.last(ctx)
		case <-timer.C:
		}
		now := time.Now()
		switch err := w.step(ctx); {
		case errors.Is(err, process.ErrNoProcess):
			return w.finish(now, false)
		case err != nil:
			return errors.Join(err, w.finish(now, true))
		}
		timer.Reset(w.pause(now))
	}
}

// step looks at the thread once. The error is ErrNoProcess when it has ended.
func (w *stallDetector) step(ctx context.Context) error {
	a, err := w.p.Activity(w.o.TID)
	if err != nil {
		return err
	}
	if a.Ended() {
		return process.ErrNoProcess
	}
	return w.look(ctx, time.Now(), a)
}

// last looks once more, at the end. Where we had no processor a stall may not have been seen yet.
func (w *stallDetector) last(ctx context.Context) error {
	var err error
	if w.open == nil && time.Since(w.progress) >= w.o.Over {
		more, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastLook)
		defer cancel()
		if err = w.step(more); errors.Is(err, process.ErrNoProcess) {
			return w.finish(time.Now(), false)
		}
	}
	return errors.Join(err, w.finish(time.Now(), true))
}

func (w *stallDetector) pause(now time.Time) time.Duration {
	switch {
	case w.open == nil:
		return w.o.Over / looksInOver
	case now.Sub(w.progress) > longStall:
		return sampleLong
	}
	return min(sampleEvery, w.o.Over/looksInOver)
}

// look decides whether the thread has got on since the last look.
func (w *stallDetector) look(ctx context.Context, now time.Time, a process.Activity) error {
	if w.before.StackStart != 0 && a.StackStart != w.before.StackStart {
		if err := w.newProgram(now); err != nil {
			return err
		}
	}
	w.lookTime = now
	blind := w.passage == nil
	passed, err := w.passed()
	if err != nil {
		return err
	}
	usual := w.habits.usual != nil && w.habits.usual.holds(&a, w.p)
	moved := passed || usual
	if moved {
		w.habits.last = now
	} else if blind {
		// Without a way to know whether it came by its wait, a system call that waited or
		// read something has to do.
		moved = a.Blocked != w.before.Blocked || a.Reads != w.before.Reads
	}
	if !usual && a.Waiting != nil && a.Waiting.InSyscall {
		became, err := w.meet(ctx, now, &a)
		if err != nil {
			return err
		}
		moved, usual = moved || became, became
	}
	if moved {
		err = w.gotOn(now, &a, usual)
	} else {
		err = w.sampleStall(ctx, now, &a)
	}
	w.before, w.beforeTime, w.beforeUsual = a, now, usual
	if w.stopped {
		// A stop of ours counts as a wait of the thread's.
		if after, err := w.p.Activity(w.o.TID); err == nil {
			w.before.Blocked = after.Blocked
		}
		w.stopped = false
	}
	return errors.Join(err, w.arm(now))
}

// newProgram forgets what was known of the program that execve has replaced.
func (w *stallDetector) newProgram(now time.Time) error {
	err := errors.Join(w.finish(now, false), w.disarm())
	w.habits = habits{begun: now}
	w.progress, w.sampleIsLast = now, false
	return errors.Join(err, w.stacks.refresh())
}

// passed says whether the thread has come by its usual wait since the last look.
func (w *stallDetector) passed() (bool, error) {
	if w.passage == nil {
		return false, nil
	}
	seen := w.passage.Seen()
	if len(seen) == 0 {
		return false, nil
	}
	usual := w.habits.usual
	by := slices.ContainsFunc(seen, func(sp uint64) bool { return sp == 0 || sp-8 >= usual.slot })
	by = by || !w.stacks.underWay(usual)
	w.nested = !by
	return by, w.disarm()
}

func (w *stallDetector) disarm() error {
	if w.passage == nil {
		return nil
	}
	err := w.passage.Close()
	w.passage = nil
	return err
}

// arm sees to it that the thread's coming by its usual wait is noticed.
func (w *stallDetector) arm(now time.Time) error {
	usual := w.habits.usual
	if w.passage != nil || usual == nil || usual.back == 0 || now.Before(w.nextPassage) {
		return nil
	}
	times := 1
	if w.nested {
		times = nestedPassages
	}
	passage, err := w.p.Passage(w.o.TID, usual.back, times)
	if err == nil {
		w.passage = passage
		return nil
	}
	w.nextPassage = now.Add(retryBreakpoint)
	if !w.noticed && w.o.Notice != nil && !errors.Is(err, process.ErrReleased) {
		w.noticed = true
		w.o.Notice(fmt.Sprintf("%v; meanwhile any system call that waits or reads counts as getting on", err))
	}
	return nil
}

// meet looks at where a thread waits that is not its usual wait, and says whether it
// is from now on, or whether the thread has nothing to do.
func (w *stallDetector) meet(ctx context.Context, now time.Time, a *process.Activity) (bool, error) {
	s, still := w.takeWaiting(a)
	if !still || s.blockage.rest == neverRest {
		return false, nil
	}
	if s.blockage.rest == idleRest {
		return true, nil
	}
	p := place{number: a.Waiting.Number, sp: a.Waiting.SP, pc: a.Waiting.PC, rest: s.blockage.rest}
	if p.back, p.slot = w.stacks.callerOf(s.complete); p.back == 0 && !s.complete {
		var err error
		if s, err = w.take(ctx, a); err != nil {
			return false, err
		}
		p.back, p.slot = w.stacks.callerOf(s.complete)
	}
	if len(s.frames) == 0 || len(w.stacks.frames) == 0 || w.stacks.frames[0].SP != a.Waiting.SP {
		return false, nil
	}
	if u := w.habits.usual; u != nil {
		p.inside = p.slot < u.slot && w.stacks.underWay(u)
		if p.sameCall(u) && p.slot >= u.slot {
			w.habits.move(p, now)
			return true, w.disarm()
		}
	}
	if !w.habits.meet(p, a.Blocked, now) {
		return false, nil
	}
	return true, w.disarm()
}

// gotOn ends a stall, if there was one.
func (w *stallDetector) gotOn(now time.Time, a *process.Activity, usual bool) error {
	err := w.finish(now, false)
	w.progress = now
	if w.beforeUsual && !usual && a.Blocked == w.before.Blocked {
		// It has left its wait since, and not waited again: it was awake for as long as
		// it ran, and waited to.
		awake := a.CPU - w.before.CPU + a.Queued - w.before.Queued
		if woke := now.Add(-awake); awake > 0 && woke.After(w.beforeTime) {
			w.progress = woke
		}
	}
	return errors.Join(err, w.stacks.renew())
}

// sampleStall takes a sample of a thread that may stall.
func (w *stallDetector) sampleStall(ctx context.Context, now time.Time, a *process.Activity) error {
	if now.Sub(w.progress) < w.o.Over/2 {
		return nil
	}
	s, err := w.take(ctx, a)
	if err != nil {
		return err
	}
	if w.wakesUp() {
		return w.gotOn(now, a, false)
	}
	if w.open == nil {
		w.open = &openStall{tree: newCallTree(), states: map[StallState]int{}}
	}
	w.open.samples++
	w.open.states[s.blockage.state]++
	w.open.tree.add(s.frames)
	if !s.complete {
		w.open.partial++
	}
	if !w.open.told && w.o.Begun != nil && now.Sub(w.progress) >= w.o.Over {
		w.open.told = true
		w.o.Begun(w.o.TID, w.progress)
	}
	return w.stacks.renew()
}

// wakesUp says that the thread, whose stack was just taken, has not left its usual wait
// yet: it is about to, and had nothing to do before.
func (w *stallDetector) wakesUp() bool {
	const syscallSize = 2 // of the instruction that a call to be repeated goes back to
	usual := w.habits.usual
	if !w.stopped || usual == nil || len(w.stacks.frames) == 0 {
		return false
	}
	f := &w.stacks.frames[0]
	return f.SP == usual.sp && (f.PC == usual.pc || f.PC == usual.pc-syscallSize)
}

// finish reports the stall that was under way, if it was long enough.
func (w *stallDetector) finish(now time.Time, ongoing bool) error {
	open := w.open
	w.open = nil
	if open == nil || now.Sub(w.progress) < w.o.Over {
		return nil
	}
	s := &Stall{
		TID: w.o.TID, Name: w.before.Name, Start: w.progress, Duration: now.Sub(w.progress),
		Samples: open.samples, Partial: open.partial, Stack: open.tree.heaviest(), Ongoing: ongoing,
	}
	most := 0
	for state, n := range open.states {
		if n > most || n == most && state < s.State {
			s.State, most = state, n
		}
	}
	return w.report(s)
}
