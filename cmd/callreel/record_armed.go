package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/sampler"
)

// armedFlags let record keep the last moments only, and dump them when something happens.
type armedFlags struct {
	when   []string
	keep   time.Duration
	max    int
	why    bool
	memory size
	with   processIDs

	answers *whyWriter // nil without --why

	mu     sync.Mutex
	dumps  []string
	frozen time.Duration // at most, for a dump
}

func (f *armedFlags) add(fl *pflag.FlagSet) {
	fl.StringArrayVar(&f.when, "when", nil, "write only the moments before this `CONDITION` comes true, such as 'F > 5ms' (repeatable)")
	fl.DurationVar(&f.keep, "keep", recorder.DefaultKeep, "with --when: how much of the past a dump holds")
	fl.Var(&f.memory, "memory", "with --when: memory for the past that the rings hold no more (default 64M)")
	fl.BoolVar(&f.why, "why", false, "with --when: write beside each dump, as text, why its call was slow")
	fl.Var(&f.with, "with", "with --when: arm this process, too, and dump the same time of all (repeatable)")
	fl.IntVar(&f.max, "max", 20, "with --when: how many dumps conditions make at most; 0 means any number")
}

// finish ends what goes on beside the recording.
func (f *armedFlags) finish() {
	if f.answers != nil {
		f.answers.finish()
	}
}

func (f *armedFlags) isArmed() bool { return len(f.when) > 0 }

// files are the dumps that were made.
func (f *armedFlags) files() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.dumps...)
}

// wrong says what is wrong with the other processes, beside the one that -p gives; empty if nothing is.
func (f *armedFlags) wrong(pid processID) string {
	for i, other := range f.with {
		switch {
		case !f.isArmed():
			return "--with goes with --when"
		case pid == 0:
			return "--with needs -p PID: a command can't be recorded with others"
		case other == int(pid) || slices.Contains(f.with[:i], other):
			return fmt.Sprintf("--with %d: the process is given twice", other)
		}
	}
	return ""
}

// arming reads the flags; nil if recording isn't armed. SIGUSR2 asks for a dump.
func (f *armedFlags) arming(ctx context.Context, status *status) (*recorder.Arming, error) {
	if !f.isArmed() {
		if f.memory > 0 {
			return nil, usageError("callreel record: --memory is for what --when keeps; --ring is for events that wait to be written")
		}
		if f.why {
			return nil, usageError("callreel record: --why is for the dumps of --when; callreel why reads other reels")
		}
		return nil, nil
	}
	if f.keep <= 0 {
		return nil, usageError("callreel record: --keep %v: the last moments have to be some time", f.keep)
	}
	if f.memory > 0 && f.memory < recorder.MinMemory {
		return nil, usageError("callreel record: --memory %d: give at least %dM", f.memory, recorder.MinMemory>>20)
	}
	if f.max < 0 {
		return nil, usageError("callreel record: --max %d: give 0 for any number", f.max)
	}
	requests := make(chan recorder.DumpRequest)
	a := &recorder.Arming{Keep: f.keep, Max: f.max, Memory: uint64(f.memory), With: f.with, Requests: requests,
		Dumped: func(d recorder.Dumped) { f.dumped(d, status) }}
	for _, text := range f.when {
		t, err := recorder.ParseTrigger(text)
		if err != nil {
			return nil, usageError("callreel record: --when: %w", err)
		}
		if t.Kind == recorder.OnStall && t.Duration < sampler.MinOver {
			return nil, usageError("callreel record: --when %s: %w", text, sampler.ErrOver)
		}
		a.Triggers = append(a.Triggers, t)
	}
	a.Begun = func(pid int) { f.startStall(ctx, pid, a.Triggers, requests, status) }
	onSIGUSR2(ctx, requests)
	if f.why {
		f.answers = newWhyWriter(ctx, status)
	}
	return a, nil
}

// startStall asks for a dump whenever the main thread stalls, if that is one of the conditions.
func (f *armedFlags) startStall(ctx context.Context, pid int, triggers []recorder.Trigger, requests chan<- recorder.DumpRequest, status *status) {
	for _, t := range triggers {
		if t.Kind != recorder.OnStall {
			continue
		}
		go func() {
			err := sampler.Stalls(ctx, pid, sampler.StallOptions{
				Options: sampler.Options{NoNames: true}, Over: t.Duration,
				Notice: func(text string) { status.notice("%s", text) },
				Begun: func(tid int, since time.Time) {
					select {
					case requests <- recorder.DumpRequest{Kind: reel.TriggerStall, Condition: t.Text, TID: tid, From: since,
						Detail: fmt.Sprintf("it had not got on for %v", time.Since(since).Round(time.Millisecond))}:
					case <-ctx.Done():
					}
				},
			}, func(*sampler.Stall) error { return nil })
			if err != nil && ctx.Err() == nil {
				status.notice("%s is not detected: %v", t.Text, err)
			}
		}()
	}
}

func (f *armedFlags) dumped(d recorder.Dumped, status *status) {
	f.mu.Lock()
	f.dumps = append(f.dumps, d.File)
	f.frozen = max(f.frozen, d.Frozen)
	f.mu.Unlock()
	if f.answers != nil {
		f.answers.dumped(d.File)
	}
	text := fmt.Sprintf("%s: %s", d.File, d.Reason)
	if d.Missing > 0 {
		text += "; not whole, see callreel report"
	}
	status.notice("%s", text)
}

// onSIGUSR2 asks for a dump at each of them.
func onSIGUSR2(ctx context.Context, requests chan<- recorder.DumpRequest) {
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, syscall.SIGUSR2)
	go func() {
		defer signal.Stop(ch)
		for {
			select {
			case <-ch:
			case <-ctx.Done():
				return
			}
			select {
			case requests <- recorder.DumpRequest{Kind: reel.TriggerRequest, Condition: "SIGUSR2"}:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// triggersSummary is what became of triggers.
type triggersSummary struct {
	Fired      int `json:"fired"`
	Dumped     int `json:"dumped"`
	Suppressed int `json:"suppressed"`
	// FrozenMS is for how long at most a dump kept the rings from being overwritten, from its trigger on.
	FrozenMS float64 `json:"frozen_ms"`
}

// pastSummary is what was kept of the past when recording ended.
type pastSummary struct {
	Memory int    `json:"memory"`
	Used   int    `json:"used"`
	Events uint64 `json:"events"`
	// LastsNS is how long the memory lasts at the rate of the last seconds; missing if nothing came.
	LastsNS int64 `json:"lasts_ns,omitempty"`
	// ReachesBackNS is since when all is kept; missing if since recording began.
	ReachesBackNS int64 `json:"reaches_back_ns,omitempty"`
}

// sayArmed writes the summary for people.
func (f *recordFlags) sayArmed(w io.Writer, r *recorder.Result) error {
	t := r.Triggers
	text := fmt.Sprintf("%s: %s; triggers fired %s, %d of them without a dump of their own\n%s of %s traced",
		printable(f.output), things(uint64(len(f.armed.files())), "dump"), times(t.Fired), t.Suppressed, count(uint64(r.Traced)), things(uint64(r.Seen), "function"))
	if r.Ended {
		text += "; the process has ended\n"
	} else {
		text += fmt.Sprintf("; stopped %.1f ms to attach, %.1f ms to detach; text verified: %v\n",
			milliseconds(r.AttachStop), milliseconds(r.DetachStop), r.TextVerified)
	}
	text += budgetText(r)
	if r.Left != "" {
		text += fmt.Sprintf("stubs stay mapped in the process, unused: %s; callreel detach removes them later\n", printable(r.Left))
	}
	_, err := io.WriteString(w, text)
	return err
}

// times says how often.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
