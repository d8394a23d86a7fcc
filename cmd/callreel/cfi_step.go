package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/callreel/callreel/cfi/lint"
	"github.com/callreel/callreel/cfi/step"
	"github.com/callreel/callreel/demangle"
)

// cfiStepFlags are the flags of cfi step.
type cfiStepFlags struct {
	modules, functions, exclude []string
	maxSteps                    uint64
	memory                      memoryLimit
	json                        bool
	summary                     string
}

func newCFIStep() *cobra.Command {
	f := &cfiStepFlags{}
	c := &cobra.Command{
		Use:   "step [-m MODULE] [-f GLOB] -- CMD [ARG…]",
		Short: "Run a command and check call frame information against its calls; exit code 1 on findings",
		Long: `Step runs CMD and carries out the chosen functions instruction by instruction. At each it compares what the call frame
information says with the truth: where the frame, the return address and the registers that calls keep are. The truth
was noted when the function was called. What these functions call runs at full speed, unless it is chosen, too.

Without -m and -f all functions of all images are chosen. Functions that only call frame information tells of are named
by their address in the file, such as 0x1dd420.

CMD's output is its own. Findings go to stderr, or as JSON to stdout behind CMD's output (--json) or to --summary.

Exit code 0 means no findings, 1 means findings or a failure. The code that CMD ended with is in the output.`,
		Example: `  callreel cfi step -f parse -- ./program input
  callreel cfi step -m libcrypto.so.3 -f 'ChaCha20*' --summary steps.json -- openssl speed -seconds 1 chacha20`,
		Args: f.arguments,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	f.add(c.Flags())
	return c
}

func (f *cfiStepFlags) add(fl *pflag.FlagSet) {
	fl.SetInterspersed(false) // what follows CMD is CMD's
	fl.StringArrayVarP(&f.modules, "module", "m", nil, "only this `MODULE`: the base name of its file, or a glob (repeatable)")
	fl.StringArrayVarP(&f.functions, "function", "f", nil, "only functions that match this `GLOB` (repeatable)")
	fl.StringArrayVarP(&f.exclude, "exclude", "x", nil, "no functions that match this `GLOB` (repeatable)")
	fl.Uint64Var(&f.maxSteps, "max-steps", step.DefaultMaxSteps, "after this `NUMBER` of instructions stop checking and let CMD run on")
	f.memory.add(fl)
	fl.BoolVar(&f.json, "json", false, "write JSON to stdout")
	fl.StringVar(&f.summary, "summary", "", "write JSON to this `FILE`")
}

func (f *cfiStepFlags) arguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return usageError("callreel cfi step: give -- CMD; see callreel cfi step --help")
	case c.ArgsLenAtDash() < 0:
		return usageError("callreel cfi step: put -- before the command: callreel cfi step [FLAGS] -- %s", strings.Join(args, " "))
	case f.maxSteps == 0:
		return usageError("callreel cfi step: --max-steps 0: nothing would be looked at")
	}
	return nil
}

func (f *cfiStepFlags) run(c *cobra.Command, args []string) error {
	ignored := ignoredAtStart()
	ctx, stop := untilSignal(c.Context())
	defer stop()
	choice := newStepChoice(f)
	result, err := step.Run(ctx, step.Options{
		Command: args, Ignored: ignored, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Module: choice.module, Function: choice.function, Ready: choice.unmatched, MaxSteps: f.maxSteps, Memory: f.memory.limit(),
	})
	if result == nil {
		return err
	}
	for _, p := range result.Problems {
		c.PrintErrln(message(p))
	}
	if werr := f.write(c, args[0], result); werr != nil {
		return errors.Join(err, werr)
	}
	if err == nil && len(result.Findings) > 0 {
		return &exitError{code: exitFailed}
	}
	return err
}

// stepChoice chooses functions by globs.
type stepChoice struct {
	modules, functions, exclude *globs
}

func newStepChoice(f *cfiStepFlags) *stepChoice {
	return &stepChoice{newGlobs(f.modules), newGlobs(f.functions), newGlobs(f.exclude)}
}

func (s *stepChoice) module(name string) bool {
	return len(s.modules.patterns) == 0 || s.modules.match(name)
}

// function matches the name that the file has, and the one that people read.
func (s *stepChoice) function(name string) bool {
	if len(s.functions.patterns) == 0 && len(s.exclude.patterns) == 0 {
		return true
	}
	any := func(g *globs) bool {
		for _, n := range []string{name, demangle.Name(name), demangle.Short(name)} {
			if g.match(n) {
				return true
			}
		}
		return false
	}
	excluded := any(s.exclude)
	return (len(s.functions.patterns) == 0 || any(s.functions)) && !excluded
}

func (s *stepChoice) unmatched() error {
	return cmp.Or(s.modules.unmatched("-m"), s.functions.unmatched("-f"), s.exclude.unmatched("-x"))
}

// write writes the result where the flags want it.
func (f *cfiStepFlags) write(c *cobra.Command, command string, r *step.Result) error {
	if f.summary != "" {
		err := writeOutput(f.summary, true, 0, func(w io.Writer) error { return stepJSON(w, r) })
		if err != nil {
			return err
		}
	}
	switch {
	case f.json:
		return stepJSON(c.OutOrStdout(), r)
	case f.summary == "":
		return stepText(c.ErrOrStderr(), command, r) // stdout is the command's
	}
	return nil
}

// stepFinding is a finding as --json has it; the keys are promised.
type stepFinding struct {
	lintFinding
	Module string `json:"module"`
}

// stepJSON streams the findings behind what was done.
func stepJSON(w io.Writer, r *step.Result) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "{\"steps\":%d,\"functions\":%d,\"chosen\":%d,\"calls\":%d,\"threads\":%d,\"complete\":%t,\"exit_code\":%d,\n",
		r.Steps, r.Functions, r.Chosen, r.Calls, r.Threads, r.Complete, commandCode(r))
	err := jsonList(b, "findings", len(r.Findings), func(k int) any {
		f := &r.Findings[k]
		return stepFinding{lintFinding{f.Kind, f.Function, address(f.Address), f.Says, f.Truth, f.Directive}, f.Module}
	})
	b.WriteString("\n}\n")
	return errors.Join(err, b.Flush())
}

// commandCode is the code that the command ended with, as shells have it.
func commandCode(r *step.Result) int {
	if r.ExitStatus.Signal != 0 {
		return 128 + r.ExitStatus.Signal
	}
	return r.ExitStatus.Code
}

// stepText writes a line for each finding, as lint does.
func stepText(w io.Writer, command string, r *step.Result) error {
	b := bufio.NewWriter(w)
	for k := range r.Findings {
		findingText(b, r.Findings[k].Module, &r.Findings[k].Finding)
	}
	fmt.Fprintf(b, "%s: %s in %s, %s of %s chosen, %s", printable(command), things(uint64(len(r.Findings)), "finding"),
		things(r.Steps, "step"), things(uint64(r.Functions), "function"), count(uint64(r.Chosen)), things(r.Calls, "call"))
	if !r.Complete {
		b.WriteString("; --max-steps was reached, and the rest was not looked at")
	}
	if code := commandCode(r); code != 0 {
		fmt.Fprintf(b, "; the command ended with code %d", code)
	}
	b.WriteByte('\n')
	return b.Flush()
}

// findingText writes a finding in a line, in the manner of compilers.
func findingText(b *bufio.Writer, file string, f *lint.Finding) {
	fmt.Fprintf(b, "%s:%#x: %s", printable(file), f.Address, f.Kind)
	if f.Function != "" {
		fmt.Fprintf(b, " in %s", printable(demangle.Name(f.Function)))
	}
	fmt.Fprintf(b, ": says %s, truth is %s", printable(f.Says), printable(f.Truth))
	if f.Directive != "" {
		fmt.Fprintf(b, "; mend with %s", f.Directive)
	}
	b.WriteByte('\n')
}
