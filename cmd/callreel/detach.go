package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/recorder"
)

func newDetach() *cobra.Command {
	var pid processID
	var asJSON bool
	c := &cobra.Command{
		Use:   "detach -p PID",
		Short: "Remove the remains of a killed recorder from a process",
		Long: `Detach restores the text of a process whose recorder was killed, and verifies it. Until then the process runs correctly,
with probes that record nothing. So do processes that were forked from it meanwhile: they are restored, too. If it was
armed (record --when), what its rings hold is first written into the next dump of its folder.

If there is nothing to remove it says so and ends with code 0 (with --json, "removed" is 0).`,
		Example: `  callreel detach -p 1234`,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if pid == 0 {
				return usageError("callreel detach: give -p PID")
			}
			ctx, stop := untilSignal(c.Context())
			defer stop()
			w := c.OutOrStdout()
			d, err := recorder.Detach(ctx, int(pid))
			if errors.Is(err, recorder.ErrNotRecorded) { // as it should be: scripts detach after every kill
				if asJSON {
					return writeJSON(w, map[string]any{"removed": 0})
				}
				_, err = fmt.Fprintf(w, "process %d is not being recorded, and has no remains of a recorder\n", pid)
				return err
			}
			if err != nil {
				return err
			}
			if asJSON {
				err = writeJSON(w, map[string]any{
					"dump": d.Dump, "no_dump": d.NoDump, "removed": d.Sites, "sites": d.Sites, "text_verified": d.TextVerified, "detach_stop_ms": milliseconds(d.Stopped), "left": d.Left, "children": d.Children, "doubted": d.Doubted, "odd": d.Odd})
			} else {
				_, err = fmt.Fprintf(w, "restored %s; text verified: %v; stopped %.1f ms\n", things(uint64(d.Sites), "site"), d.TextVerified, milliseconds(d.Stopped))
				switch {
				case d.Dump != "":
					fmt.Fprintf(w, "%s: what the rings of the recorder held\n", printable(d.Dump))
				case d.NoDump != "":
					fmt.Fprintf(w, "what the rings of the recorder held could not be dumped: %s\n", printable(d.NoDump))
				}
				if d.Doubted > 0 {
					fmt.Fprintf(w, "not touched: %s that a recorder is said to have replaced, but for other bytes than the file has there\n", things(uint64(d.Doubted), "site"))
				}
				if d.Odd > 0 {
					fmt.Fprintf(w, "not touched: %s of markers that somebody else has set to less than was added\n", things(uint64(d.Odd), "semaphore"))
				}
				switch {
				case d.Children == 1:
					fmt.Fprintln(w, "restored, too: a process that was forked from it")
				case d.Children > 1:
					fmt.Fprintf(w, "restored, too: %s processes that were forked from it\n", count(uint64(d.Children)))
				}
				if d.Left != "" {
					fmt.Fprintf(w, "stubs stay mapped, unused: %s\n", d.Left)
				}
			}
			if err == nil && !d.TextVerified {
				return fmt.Errorf("callreel: process %d: %w", pid, recorder.ErrText)
			}
			return err
		},
	}
	addPID(c.Flags(), &pid, "the process, by its `PID`")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}
