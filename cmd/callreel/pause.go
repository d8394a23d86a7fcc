package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/recorder"
)

func newPause() *cobra.Command {
	return pauseVerb("pause", "Let a running recorder record nothing for a while", `Pause lets the recorder of a process record nothing until it is asked to go on by callreel resume. When it returns, that
is in force; the process isn't stopped for it. Probes stay in place, and each costs about as much as one that is
switched off.

Calls that are open by then are marked, since it isn't known whether they end in the pause. The page shows the pause as
a gap, and the report says how long it was. Calls in a pause aren't counted. A recorder that is paused already stays so.

With record --follow all processes pause together. With --clock exit and none a recording can't be paused, since which
calls are open is told by the times of events.`, `  callreel record -p 1234 -o app.reel --paused &
  callreel resume -p 1234
  callreel pause -p 1234`, func(ctx context.Context, pid int) error { return recorder.AskToPause(ctx, pid, "command") })
}

func newResume() *cobra.Command {
	return pauseVerb("resume", "Let a paused recorder go on", `Resume lets the recorder of a process go on after callreel pause or record --paused. When it returns, that is in force.
A recorder that isn't paused goes on as it was. A program that pauses its recording itself (CALLREEL_PAUSE) goes on when
it says so.`, `  callreel resume -p 1234`, recorder.AskToResume)
}

func pauseVerb(verb, short, long, example string, do func(context.Context, int) error) *cobra.Command {
	var pid processID
	c := &cobra.Command{
		Use:     verb + " -p PID",
		Short:   short,
		Long:    long,
		Example: example,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if pid == 0 {
				return usageError("callreel %s: give -p PID", verb)
			}
			ctx, stop := untilSignal(c.Context())
			defer stop()
			if err := do(ctx, int(pid)); err != nil {
				return fmt.Errorf("callreel %s: %w", verb, err)
			}
			return nil
		},
	}
	addPID(c.Flags(), &pid, "the process that is recorded, by its `PID`")
	return c
}

// pageControl lets the page of record --view pause the recording.
type pageControl struct{}

func (pageControl) Pause(ctx context.Context, pid int) error {
	return recorder.AskToPause(ctx, pid, "page")
}

func (pageControl) Resume(ctx context.Context, pid int) error { return recorder.AskToResume(ctx, pid) }
