package main

import (
	"context"
	"errors"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/sampler"
)

func newStacks() *cobra.Command {
	var pid processID
	var core string
	var asJSON, raw bool
	var memory memoryLimit
	var debugDirs []string
	c := &cobra.Command{
		Use:   "stacks -p PID | --core FILE",
		Short: "Show where every thread of a process is right now, or was in a core file",
		Long: `Stacks shows the stack of every thread, innermost call first. The process isn't stopped as a whole: each thread in turn
is stopped for some tens of microseconds. A stack whose outermost call was not reached says why.

Marks say that a call was not found by call frame information: [by code], [by frame pointer] and [by top of stack]. A
call may be missing before such a one, as in a JIT compiler's code. [read late] marks calls whose part of the stack was
read after the thread ran on. Code of JIT compilers has the names of /tmp/perf-PID.map, if that file is there (node
--perf-basic-prof).

` + liveNaming + `

With --raw nothing is named. callreel symbolize can name the output of --json on another machine.`,
		Example: `  callreel stacks -p 1234
  callreel stacks --core core.1234 --json`,
		Args: func(c *cobra.Command, args []string) error {
			if (pid > 0) == (core != "") {
				return usageError("callreel stacks: give either -p PID or --core FILE; see callreel stacks --help")
			}
			return noArguments(c, args)
		},
		RunE: func(c *cobra.Command, _ []string) (err error) {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			status := newStatus(c.ErrOrStderr())
			names, err := newStackNames(ctx, c.CommandPath(), status, memory, searched(int(pid), debugDirs))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, names.Close()) }()
			o := sampler.Options{NoNames: raw, Symbolizer: names, Memory: object.NewAllowance(memory.limit())}
			capture, err := takeStacks(ctx, int(pid), core, o)
			status.clear()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, capture.Close()) }()
			for _, p := range capture.Problems {
				c.PrintErrln(message(p))
			}
			if asJSON {
				return stacksJSON(c.OutOrStdout(), capture)
			}
			return stacksText(c.OutOrStdout(), capture)
		},
	}
	fl := c.Flags()
	addPID(fl, &pid, "the process to look at, by its `PID`")
	fl.StringVar(&core, "core", "", "read this core `FILE` instead of a process")
	memory.add(fl)
	addDebugDirs(fl, &debugDirs)
	fl.BoolVar(&asJSON, "json", false, "write JSON")
	fl.BoolVar(&raw, "raw", false, "write addresses only, without names")
	return c
}

func takeStacks(ctx context.Context, pid int, core string, o sampler.Options) (*sampler.Capture, error) {
	if core != "" {
		return sampler.Core(ctx, core, o)
	}
	return sampler.Stacks(ctx, pid, o)
}
