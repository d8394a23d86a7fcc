package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
)

func newDump() *cobra.Command {
	var pid processID
	var last time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "dump -p PID",
		Short: "Make an armed recorder write its last moments",
		Long: `Dump asks an armed recorder (record --when) to write what its rings hold now. It prints the name of the file, the next
slow-NNNN.reel in the recorder's folder. Recording goes on. Where the recorder was killed, all that its rings still hold
is written.`,
		Example: `  callreel record -p 1234 --when 'handle > 50ms' -o dumps &
  callreel dump -p 1234 --last 5s`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case pid == 0:
				return usageError("callreel dump: give -p PID")
			case last < 0:
				return usageError("callreel dump: --last %v: that is yet to come", last)
			}
			ctx, stop := untilSignal(c.Context())
			defer stop()
			d, err := recorder.AskForDump(ctx, int(pid), recorder.DumpRequest{Kind: reel.TriggerRequest, Condition: "callreel dump", Keep: last})
			if err != nil {
				return err
			}
			w := c.OutOrStdout()
			if asJSON {
				return writeJSON(w, map[string]any{"file": d.File, "events": d.Events, "missing": d.Missing, "frozen_ms": milliseconds(d.Frozen),
					"took_ms": milliseconds(d.Took)})
			}
			_, err = fmt.Fprintln(w, printable(d.File))
			return err
		},
	}
	addPID(c.Flags(), &pid, "the process that is recorded, by its `PID`")
	c.Flags().DurationVar(&last, "last", 0, "how much of the past to write (default what record --keep says)")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}
