package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/sampler"
)

// threadID is a flag that takes the ID of a thread, or main, which is 0.
type threadID int

func (t *threadID) String() string {
	if *t == 0 {
		return "main"
	}
	return strconv.Itoa(int(*t))
}

func (t *threadID) Type() string { return "TID" }

// Set reads main or a decimal number above 0.
func (t *threadID) Set(text string) error {
	if text == "main" {
		*t = 0
		return nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return fmt.Errorf("%q is neither main nor a thread ID", text)
	}
	*t = threadID(n)
	return nil
}

// stallFlags are the flags of stall.
type stallFlags struct {
	pid      processID
	over     time.Duration
	thread   threadID
	duration time.Duration
	json     bool
	memory   memoryLimit

	debugDirs []string
}

func newStall() *cobra.Command {
	f := &stallFlags{}
	c := &cobra.Command{
		Use:   "stall -p PID [--over DUR]",
		Short: "Show what a thread was doing when it made no progress",
		Long: `Stall observes a thread from outside. It reports each time in which the thread did not return to its wait, as an event
loop does to epoll_wait, for longer than --over. The report says when that was, for how long, what kept the thread, and
the heaviest stack, with the number of samples that share each of its calls. Stall runs until Ctrl-C, the end of -d, or
the end of the process.

A thread that rests in its wait is no stall. A thread that is blocked elsewhere, on a disk, a lock or the network, is.
Stall learns which system call the wait is. The thread isn't stopped as long as it gets on. When it
doesn't, it is stopped for some tens of microseconds every 10 to 20 ms while it runs. While it waits it is stopped at
most once, and only if that doesn't prolong the wait.

What kept a thread is one of running, starved (others had the processors), disk, lock, network, pipe, sleep, child,
events (one of several things, but not in its usual wait), stopped (by a signal or a debugger) and blocked (in another
system call).

If record --when is at work on the process, each stall comes with the reel of its last moments: stall asks the recorder
for a dump when the stall is over.

` + liveNaming,
		Example: `  callreel stall -p 1234 --over 200ms
  callreel stall -p 1234 --thread 1240 -d 1h --json > stalls.jsonl`,
		Args: f.arguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fl := c.Flags()
	addPID(fl, &f.pid, "the process, by its `PID`")
	fl.DurationVar(&f.over, "over", 200*time.Millisecond, "report stalls that are at least this long; 10ms is the least")
	fl.Var(&f.thread, "thread", "the thread to observe: main, or a `TID`")
	fl.DurationVarP(&f.duration, "duration", "d", 0, "end after this time, such as 5s or 1m30s")
	f.memory.add(fl)
	addDebugDirs(fl, &f.debugDirs)
	fl.BoolVar(&f.json, "json", false, "write JSON, one object a line for each stall")
	return c
}

// arguments asks for a process and for times that make sense.
func (f *stallFlags) arguments(c *cobra.Command, args []string) error {
	switch {
	case f.pid == 0:
		return usageError("callreel stall: give -p PID; see callreel stall --help")
	case f.over < sampler.MinOver:
		return usageError("callreel stall: --over %v: %w", f.over, sampler.ErrOver)
	case f.duration < 0:
		return usageError("callreel stall: -d %v: give a duration of 0 or more", f.duration)
	}
	return noArguments(c, args)
}

func (f *stallFlags) run(c *cobra.Command) (err error) {
	ctx, stop := untilSignal(c.Context())
	defer stop()
	status := newStatus(c.ErrOrStderr())
	names, err := newStackNames(ctx, c.CommandPath(), status, f.memory, searched(int(f.pid), f.debugDirs))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, names.Close()) }()
	return sampler.Stalls(ctx, int(f.pid), sampler.StallOptions{
		Options: sampler.Options{Symbolizer: names, Memory: object.NewAllowance(f.memory.limit())}, TID: int(f.thread), Over: f.over, For: f.duration,
		Notice: func(text string) { c.PrintErrln(message(errors.New(text))) },
	}, func(s *sampler.Stall) error {
		status.clear()
		reel, missing := f.lastMoments(ctx, s)
		if f.json {
			return stallJSON(c.OutOrStdout(), s, reel, missing)
		}
		return stallText(c.OutOrStdout(), s, reel, missing)
	})
}
