package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/recorder"
)

func newSet() *cobra.Command {
	var pid processID
	var q recorder.SetRequest
	var asJSON bool
	c := &cobra.Command{
		Use:   "set -p PID",
		Short: "Change what a running recorder records",
		Long: `Set changes what a running recorder records. When it returns, calls that begin from then on go by the change. Calls that
are open by then are recorded to their end. A function that is switched off costs a jump at its entry.

Only functions that were chosen when recording began can be switched: others have no probes. Libraries that are loaded
later go by the last change. Functions that record --when or --inside names stay on.

--min and --threads filter calls from then on, whether or not recording began with them. --min 0 and --threads '*'
let all in again. --keep and --when change the values that an armed recording began with.`,
		Example: `  callreel record -p 1234 -o app.reel &
  callreel set -p 1234 -x 'dict*'
  callreel set -p 1234 --all
  callreel set -p 1234 --when 'handle > 20ms'`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			q.NoMin = c.Flags().Changed("min") && q.Min == 0
			switch {
			case pid == 0:
				return usageError("callreel set: give -p PID")
			case !q.All && len(q.Functions)+len(q.Exclude)+len(q.Threads)+len(q.When) == 0 && q.Min == 0 && !q.NoMin && q.Keep == 0:
				return usageError("callreel set: say what is to change: -f, -x, --all, --min, --threads, --keep or --when")
			case q.Min < 0 || q.Keep < 0:
				return usageError("callreel set: a time below 0")
			case q.All && len(q.Functions) > 0:
				return usageError("callreel set: --all and -f don't go together")
			}
			for _, text := range q.When {
				if _, err := recorder.ParseTrigger(text); err != nil {
					return usageError("callreel set: --when %w", err)
				}
			}
			ctx, stop := untilSignal(c.Context())
			defer stop()
			a, err := recorder.AskToSet(ctx, int(pid), q)
			if err != nil {
				return err
			}
			for _, missed := range a.Waiting {
				newStatus(c.ErrOrStderr()).notice("%s; it is for libraries that are loaded later", missed)
			}
			w := c.OutOrStdout()
			switched := q.All || len(q.Functions)+len(q.Exclude) > 0
			switch {
			case asJSON && switched:
				return writeJSON(w, map[string]any{"functions": a})
			case asJSON:
				return writeJSON(w, map[string]any{})
			case !switched:
				_, err = fmt.Fprintln(w, "set")
				return err
			}
			kept := ""
			if a.Kept > 0 {
				kept = fmt.Sprintf(" (%d of them since --when or --inside names them)", a.Kept)
			}
			_, err = fmt.Fprintf(w, "%d functions are recorded%s, %d are off; %d changed\n", a.On, kept, a.Off, a.Changed)
			return err
		},
	}
	fl := c.Flags()
	addPID(fl, &pid, "the process that is recorded, by its `PID`")
	fl.StringArrayVarP(&q.Functions, "function", "f", nil, "of the chosen functions, record only those that match this `GLOB` (repeatable)")
	fl.StringArrayVarP(&q.Exclude, "exclude", "x", nil, "stop recording functions that match this `GLOB` (repeatable)")
	fl.BoolVar(&q.All, "all", false, "record all chosen functions again")
	fl.DurationVar(&q.Min, "min", 0, "keep only calls that take at least this long; 0 keeps all")
	fl.StringArrayVar(&q.Threads, "threads", nil, "only threads whose name matches this `GLOB` (repeatable)")
	fl.DurationVar(&q.Keep, "keep", 0, "of an armed recorder: how much of the past a dump holds")
	fl.StringArrayVar(&q.When, "when", nil, "of an armed recorder: another number in this `CONDITION`, such as 'F > 10ms' (repeatable)")
	fl.BoolVar(&asJSON, "json", false, "write JSON")
	return c
}
