package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cmd/callreel/internal/doctor"
)

func newDoctor() *cobra.Command {
	var pid processID
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor [-p PID]",
		Short: "Check what works on this machine, and say what to change",
		Long: `Doctor checks this machine, and tries recording on a small process that it starts for that. With -p it checks whether
that process can be recorded. The process is stopped for about a millisecond, as for a recording, and not changed. The
exit code is 0 if recording works, else 3.`,
		Example: `  callreel doctor
  callreel doctor -p 1234 --json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			var d diagnosis
			if pid > 0 {
				d.PID = int(pid)
				d.Checks, d.Functions = doctor.Process(c.Context(), int(pid))
			} else {
				self, err := os.Executable()
				if err != nil {
					return fmt.Errorf("callreel doctor: %w", err)
				}
				d.Checks = doctor.Machine(c.Context(), doctor.Options{Self: self, Folder: "."})
			}
			d.Works = doctor.Works(d.Checks)
			write := d.text
			if asJSON {
				write = func(w io.Writer) error { return writeJSON(w, &d) }
			}
			if err := write(c.OutOrStdout()); err != nil {
				return err
			}
			if !d.Works {
				return &exitError{code: exitNotPermitted}
			}
			return nil
		},
	}
	addPID(c.Flags(), &pid, "check this process instead, by its `PID`")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// diagnosis is what --json writes.
type diagnosis struct {
	Works     bool              `json:"works"`
	PID       int               `json:"pid,omitempty"`
	Checks    []doctor.Check    `json:"checks"`
	Functions *doctor.Functions `json:"functions,omitempty"`
}

// text writes the diagnosis for people.
func (d *diagnosis) text(w io.Writer) error {
	b := bufio.NewWriter(w)
	for _, c := range d.Checks {
		fmt.Fprintf(b, "%-8s %-14s %s\n", c.State, c.Name, printable(c.What))
		if c.Do != "" {
			fmt.Fprintf(b, "%-23s -> %s\n", "", printable(c.Do))
		}
	}
	verdict := "Recording works here."
	switch {
	case d.PID > 0 && d.Works:
		verdict = fmt.Sprintf("Process %d can be recorded.", d.PID)
	case d.PID > 0:
		verdict = fmt.Sprintf("Process %d can't be recorded.", d.PID)
	case !d.Works:
		verdict = "Recording doesn't work here."
	}
	fmt.Fprintf(b, "\n%s\n", verdict)
	return b.Flush()
}
