package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/why"
)

// whyFlags are the flags of why.
type whyFlags struct {
	functions []string
	slowest   int
	over      time.Duration
	call      string
	limit     int
	json      bool
	markdown  bool
	debugDirs []string
}

func newWhy() *cobra.Command {
	f := &whyFlags{}
	c := &cobra.Command{
		Use:   "why FILE",
		Short: "Say why a call was slow: hold it against ordinary calls of the same function",
		Long: `Why explains slow calls: those of a function (-f) that took longest (--slowest) or longer than --over, one by its ID
(--call, as the page and --json give it), or, of a dump without flags, the call that it was made for.

The call is held against its peers: other calls of the function by threads of the same kind, from all over the reel,
those between the 20th and the 80th percentile. What it took longer is told apart by place and by what was different:
more calls of the same, slower calls, a path that peers don't take, own time; and by what the thread did: running on a
CPU, ready to run, or blocked. What lies within the scatter of other calls isn't given as a cause.

` + reelNaming,
		Example: `  callreel why dumps/slow-0001.reel
  callreel why slow.reel -f handle_request --slowest 5
  callreel why slow.reel -f 'handle_*' --over 20ms --json`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	fl := c.Flags()
	fl.StringArrayVarP(&f.functions, "function", "f", nil, "calls of functions that match this `GLOB` (repeatable)")
	fl.IntVar(&f.slowest, "slowest", 0, "explain the `N` longest calls (default 1, with --over all)")
	fl.DurationVar(&f.over, "over", 0, "explain calls that took longer than this `TIME`, such as 20ms")
	fl.StringVar(&f.call, "call", "", "explain the call with this `ID`")
	fl.IntVar(&f.limit, "limit", 0, "only the first `N` causes of each call (default all)")
	fl.BoolVar(&f.json, "json", false, "write JSON")
	fl.BoolVar(&f.markdown, "markdown", false, "write Markdown, for chats and tickets")
	addDebugDirs(c.Flags(), &f.debugDirs)
	return c
}

// options reads the flags.
func (f *whyFlags) options(wanted *globs) (why.Options, error) {
	o := why.Options{Slowest: f.slowest, Over: f.over, Name: demangle.Name}
	switch {
	case f.json && f.markdown:
		return o, usageError("callreel why: --json or --markdown, not both")
	case f.slowest < 0 || f.slowest > why.MaxCalls:
		return o, usageError("callreel why: --slowest %d: use 1 to %d", f.slowest, why.MaxCalls)
	case f.over < 0:
		return o, usageError("callreel why: --over %v: no call takes less than no time", f.over)
	case f.limit < 0:
		return o, usageError("callreel why: --limit %d: use 0 for all, or a number above it", f.limit)
	case f.call != "" && (len(f.functions) > 0 || f.slowest > 0 || f.over > 0):
		return o, usageError("callreel why: --call names a call; -f, --slowest and --over choose others")
	case f.call == "" && len(f.functions) == 0 && (f.slowest > 0 || f.over > 0):
		return o, usageError("callreel why: --slowest and --over choose calls of functions; give -f")
	}
	if f.call != "" {
		id, err := why.ParseCallID(f.call)
		if err != nil {
			return o, usageError("callreel why: --call: %w", err)
		}
		o.Call = &id
	}
	if len(f.functions) > 0 {
		o.Match = func(name string) bool { return wanted.match(name) || wanted.match(demangle.Short(name)) }
	}
	return o, nil
}

func (f *whyFlags) run(c *cobra.Command, path string) error {
	wanted := newGlobs(f.functions)
	o, err := f.options(wanted)
	if err != nil {
		return err
	}
	file, err := reel.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	ctx, stop := untilSignal(c.Context())
	defer stop()
	status := newStatus(c.ErrOrStderr())
	names, err := newReelNames(ctx, c, status, f.debugDirs)
	if err != nil {
		return err
	}
	defer names.Close() // only read from
	file.NameBy(names)
	r, err := why.Explain(ctx, file, o)
	if toldWhereToLook(f.debugDirs) {
		tellNotFound(status, names)
	}
	if err := wanted.unmatched("-f"); err != nil {
		return fmt.Errorf("callreel why: %s: %w", path, err)
	}
	switch {
	case errors.Is(err, why.ErrNotChosen):
		return usageError("callreel %w; give -f FUNCTION with --slowest or --over, or --call ID", err)
	case err != nil:
		return err
	}
	r.Limit(f.limit)
	w := c.OutOrStdout()
	switch {
	case f.json:
		return whyJSON(w, r)
	case f.markdown:
		_, err = io.WriteString(w, printableLines(r.Markdown()))
	default:
		_, err = io.WriteString(w, printableLines(r.Text()))
	}
	return err
}

// whyJSON streams the answers; the keys are promised.
func whyJSON(w io.Writer, r *why.Report) error {
	b := bufio.NewWriter(w)
	b.WriteString("{")
	if err := jsonList(b, "calls", len(r.Calls), func(i int) any { return &r.Calls[i] }); err != nil {
		return err
	}
	b.WriteString(",\n")
	if err := jsonList(b, "groups", len(r.Groups), func(i int) any { return r.Groups[i] }); err != nil {
		return err
	}
	if len(r.Notes) > 0 {
		b.WriteString(",\n")
		if err := jsonList(b, "notes", len(r.Notes), func(i int) any { return r.Notes[i] }); err != nil {
			return err
		}
	}
	b.WriteString("}\n")
	return b.Flush()
}

// printableLines makes each line safe for a terminal.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
