// Command callreel is a flight recorder for native programs: see `callreel --help`.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the whole program: it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return exitDone
	}
	var e *exitError
	if errors.As(err, &e) && e.err == nil {
		return e.code
	}
	fmt.Fprintln(stderr, message(err))
	return exitCode(err)
}
