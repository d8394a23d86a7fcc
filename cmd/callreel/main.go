// Command callreel is a flight recorder for native programs: see `callreel --help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// version is set by the linker.
var version = "devel"

// Exit codes, as DESIGN.md promises them.
const (
	exitDone         = 0
	exitFailed       = 1
	exitUsage        = 2
	exitNotPermitted = 3
)

// exitError ends the program with a code of its own. Its err may be nil when all has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usageError is an error of the command line.
func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	var e *exitError
	if errors.As(err, &e) && e.err == nil {
		return e.code
	}
	fmt.Fprintln(os.Stderr, message(err))
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "callreel",
		Short: "A flight recorder for native programs",
		Long: `callreel attaches to a running process, records every call of the functions you choose on a timeline, and
detaches leaving the process byte for byte as it was. Nothing is recompiled.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not permitted or not supported here.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("callreel %s: %w; see callreel %s --help", c.Name(), err, c.Name())
	})
	root.AddCommand(newRecord(), newFunctions(), newReport(), newDetach())
	return root
}
