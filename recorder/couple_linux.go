package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/recorder/internal/choose"
	"github.com/callreel/callreel/recorder/internal/tables"
	"github.com/callreel/callreel/recorder/internal/trigger"
)

// isCoupled says whether the recording is one of several processes whose dumps have all of them.
func (r *recording) isCoupled() bool { return r.opt.Armed != nil && len(r.opt.Armed.With) > 0 }

// missed is what a process has nothing of that was asked for.
type missed struct {
	globs []choose.Missed
	names []string // of its functions
	other error    // of arguments and markers
}

// couple is the recordings of the other processes.
type couple struct {
	first *recording
	with  []*recording

	firstOver chan struct{} // closed when the first one's recording has ended
	running   sync.WaitGroup
	mu        sync.Mutex // guards what follows
	err       error
}

func newCouple(first *recording) *couple {
	return &couple{first: first, firstOver: make(chan struct{})}
}

// Close closes the processes. They may be closed already.
func (c *couple) Close() {
	for _, r := range c.with {
		r.Close()
	}
}

// attach plans all, and then records all: if one is refused, none is recorded.
func (c *couple) attach(ctx context.Context) error {
	first := c.first
	if err := first.planFor(ctx, first.opt.PID, nil); err != nil {
		return err
	}
	for i, pid := range first.opt.Armed.With {
		if pid == first.opt.PID || slices.Contains(first.opt.Armed.With[:i], pid) {
			return fmt.Errorf("callreel: process %d: %w: it is to be recorded twice", pid, ErrRefused)
		}
		r := c.recordingOf()
		c.with = append(c.with, r)
		if err := r.planFor(ctx, pid, nil); err != nil {
			return err
		}
	}
	all := append([]*recording{first}, c.with...)
	if err := checkTogether(all); err != nil {
		return err
	}
	for i, r := range all {
		if err := r.switchOn(ctx); err != nil {
			return leaveAll(ctx, all[:i], err)
		}
	}
	for i, r := range all { // the folder is made when all are on
		if err := r.create(); err != nil {
			for _, r := range all[:i] {
				r.control.Close()
			}
			return leaveAll(ctx, all, err)
		}
	}
	return nil
}

// leaveAll detaches from processes that could be recorded, after an error.
func leaveAll(ctx context.Context, all []*recording, err error) error {
	for _, r := range all {
		err = r.leave(ctx, err)
	}
	return err
}

// recordingOf returns a recording that goes into the first one's dumps.
func (c *couple) recordingOf() *recording {
	first := c.first
	r := &recording{shared: first.shared, opt: first.opt, first: first, out: part{first.out}, clock: sameClock(first.set.TicksPerSecond)}
	arming := *first.opt.Armed
	arming.Begun = nil // which is for the first
	r.opt.Armed, r.opt.Progress, r.opt.Started = &arming, nil, nil
	return r
}

// checkTogether makes sure that all that was asked for is in one of the processes.
func checkTogether(all []*recording) error {
	var sets []*trigger.Set
	var names []string
	var other error
	found := false
	for _, r := range all {
		sets = append(sets, r.triggers)
		names = append(names, r.missed.names...)
		other = errors.Join(other, r.missed.other)
		found = found || r.missed.other == nil
	}
	if err := trigger.CheckAll(sets, names); err != nil {
		return err
	}
	for _, m := range all[0].missed.globs {
		inAll := !slices.ContainsFunc(all[1:], func(r *recording) bool {
			return !slices.ContainsFunc(r.missed.globs, func(o choose.Missed) bool { return o.Flag == m.Flag && o.Glob == m.Glob })
		})
		if inAll {
			return m.Err()
		}
	}
	if !found {
		return other
	}
	return nil
}

// checkValues says whether the process has functions and markers for which something is asked.
func (r *recording) checkValues(ch *choose.Chooser) error {
	if err := r.captures.Check(ch.Names(), nil); err != nil {
		return err
	}
	return r.markers.Check(nil)
}

func (c *couple) store(reel tables.Reel) tables.Store { return tables.NewShared(reel) }

// start records the others, until ctx ends or they do.
func (c *couple) start(ctx context.Context) {
	for _, r := range c.with {
		c.running.Go(func() {
			if err := r.Run(ctx); err != nil && !errors.Is(err, process.ErrNoProcess) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.err = errors.Join(c.err, err)
			}
		})
	}
}

func (c *couple) wait(to *Result) error {
	close(c.firstOver)
	c.running.Wait()
	to.add(&c.first.sum)
	for _, r := range c.with {
		s := &r.result
		to.Triggers.Fired += s.Triggers.Fired
		to.Triggers.Dumped += s.Triggers.Dumped
		to.Triggers.Suppressed += s.Triggers.Suppressed
		to.AttachStop, to.DetachStop = max(to.AttachStop, s.AttachStop), max(to.DetachStop, s.DetachStop)
		to.Images = append(to.Images, s.Images...)
		to.Ended = to.Ended && s.Ended
	}
	return c.err
}

func (c *couple) family(r *recording) family { return newAlone(r) }
