package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/mark/header"
)

func newHeader() *cobra.Command {
	return &cobra.Command{
		Use:   "header",
		Short: "Write callreel.h, with which programs get markers of their own",
		Long: `Header writes callreel.h to stdout: macros for C and C++ with which a program says what it does, in spans, asynchronous
spans, flows, counters and instants. Nothing is linked. Each marker is one nop until somebody records it with record
--markers 'callreel:*'; bpftrace, perf, gdb and SystemTap know it, too, as an SDT marker of the provider callreel.

docs/markers-in-code.md says more, also for Rust and Go.`,
		Example: `  callreel header > callreel.h`,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := io.Copy(c.OutOrStdout(), header.Reader()); err != nil {
				return fmt.Errorf("callreel header: %w", err)
			}
			return nil
		},
	}
}
