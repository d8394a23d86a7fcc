package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/recorder"
)

func newDetach() *cobra.Command {
	var pid int
	var asJSON bool
	c := &cobra.Command{
		Use:   "detach -p PID",
		Short: "Remove what a recorder that died has left in a process",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if pid <= 0 {
				return usageError("callreel detach: give -p PID")
			}
			d, err := recorder.Detach(c.Context(), pid)
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(c.OutOrStdout()).Encode(map[string]any{
					"sites": d.Sites, "text_verified": d.TextVerified, "detach_stop_ms": milliseconds(d.Stopped), "left": d.Left})
			} else {
				_, err = fmt.Fprintf(c.OutOrStdout(), "restored %d sites; text verified: %v; stopped %.1f ms\n", d.Sites, d.TextVerified, milliseconds(d.Stopped))
				if d.Left != "" {
					fmt.Fprintf(c.OutOrStdout(), "stubs stay mapped, unused: %s\n", d.Left)
				}
			}
			if err == nil && !d.TextVerified {
				return fmt.Errorf("callreel: process %d: %w", pid, recorder.ErrText)
			}
			return err
		},
	}
	c.Flags().IntVarP(&pid, "pid", "p", 0, "the process")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}
