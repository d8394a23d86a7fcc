package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// diffFlags are the flags of diff.
type diffFlags struct {
	sort      string
	limit     int
	functions []string
	json      bool
	failOver  share
	debugDirs []string
}

func newDiff() *cobra.Command {
	f := &diffFlags{}
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Show what became slower from one reel to another",
		Long: `Diff compares the functions of two reels, by name and module, and lists them by how much slower they became. That is the
time that the function's own code took in B beyond what as many calls of it took in A. So neither the length of the
recordings nor the number of calls matters, and a function isn't slower because it calls a slow one. A function that
only B has counts with all of its own time. Calls that were open at the end, or when their thread ended, don't count:
how long those were seen depends on how long was recorded.

The other columns are, for A and for B, the function's own time in a call on average, the median, the 99th percentile,
and the calls.

Below the table is how much more time of its own B has in all, split into what more calls of functions come to, what
slower calls do, and functions that only one has; and, if both reels say when threads ran, into time on a CPU, ready
to run, and blocked.

A function that was off for some time for what its calls cost is marked, and isn't taken for one that came or went: it
isn't known how many calls it had (in JSON "off_a", "off_b" and "off_ns").

Spans of markers are compared, too: by how much longer those of B took than as many of A.

--fail-over 5% ends with code 1 if B is slower by more than that: if the calls that B made of functions that both have
took so much more time of their own than as many did in A. If both reels say when threads ran, only time on a CPU
counts. Functions with fewer than 20 calls in either don't count, and -f chooses others.

` + reelNaming + `
So a stripped program can be compared with one that isn't.`,
		Example: `  callreel diff before.reel after.reel --limit 20
  callreel diff before.reel after.reel --sort p99 -f 'parse*'
  callreel diff before.reel after.reel --json
  callreel diff before.reel after.reel --fail-over 5%`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError("callreel diff: give two FILEs; see callreel diff --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, newStatus(c.ErrOrStderr()), args)
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.sort, "sort", "slower", "sort by the growth of this `KEY`: slower, total, self, p50, p99 or max")
	fl.IntVar(&f.limit, "limit", 0, "only the first `N` functions (default all)")
	fl.StringArrayVarP(&f.functions, "function", "f", nil, "only functions that match this `GLOB` (repeatable)")
	fl.BoolVar(&f.json, "json", false, "write JSON")
	fl.Var(&f.failOver, "fail-over", "end with code 1 if B is slower by more than this `SHARE`, such as 5%")
	addDebugDirs(c.Flags(), &f.debugDirs)
	return c
}

// changeKeys are what diff sorts by.
var changeKeys = map[string]func(*reel.FunctionChange) int64{
	"slower": func(c *reel.FunctionChange) int64 { return c.Slower },
	"total":  (*reel.FunctionChange).DeltaTotal,
	"self":   (*reel.FunctionChange).DeltaSelf,
	"p50":    growth(func(f *reel.FunctionSummary) uint64 { return f.P50 }, wasWhole),
	"p99":    growth(func(f *reel.FunctionSummary) uint64 { return f.P99 }, wasWhole),
	"max":    growth(func(f *reel.FunctionSummary) uint64 { return f.EndedMax }, func(f *reel.FunctionSummary) bool { return f.Ended() > 0 }),
}

// wasWhole says whether a call of the function was seen whole: else there are no percentiles.
func wasWhole(f *reel.FunctionSummary) bool { return f.Complete > 0 }

// growth is by how much a number has grown of a function of which both know it; 0 where one doesn't.
func growth(of func(*reel.FunctionSummary) uint64, known func(*reel.FunctionSummary) bool) func(*reel.FunctionChange) int64 {
	return func(c *reel.FunctionChange) int64 {
		if c.A == nil || c.B == nil || !known(c.A) || !known(c.B) {
			return 0
		}
		return int64(of(c.B)) - int64(of(c.A))
	}
}

func (f *diffFlags) run(c *cobra.Command, status *status, paths []string) error {
	w := c.OutOrStdout()
	key, ok := changeKeys[f.sort]
	if !ok {
		return usageError("callreel diff: --sort %s: use slower, total, self, p50, p99 or max", f.sort)
	}
	if f.limit < 0 {
		return usageError("callreel diff: --limit %d: use 0 for all, or a number above it", f.limit)
	}
	wanted := newGlobs(f.functions)
	options := reel.SummaryOptions{Name: demangle.Name}
	if len(f.functions) > 0 {
		options.Match = func(name string) bool { return wanted.match(name) || wanted.match(demangle.Short(name)) }
	}
	var files [2]*reel.File
	ctx, stop := untilSignal(c.Context())
	defer stop()
	names, err := newReelNames(ctx, c, status, f.debugDirs)
	if err != nil {
		return err
	}
	defer names.Close()          // only read from
	for i, path := range paths { // both at first: reading one may take minutes
		var err error
		if files[i], err = reel.Open(path); err != nil {
			return err
		}
		defer files[i].Close() // only read from
		files[i].NameBy(names)
	}
	var sums [2]*reel.Summary
	for i, path := range paths {
		status.show("reading %s   Ctrl-C ends", path)
		sums[i] = reel.Summarize(files[i], options)
		status.clear()
		for _, d := range sums[i].Damage {
			status.notice("%s is damaged: %s", path, d)
		}
	}
	if toldWhereToLook(f.debugDirs) {
		tellNotFound(status, names)
	}
	if err := wanted.unmatched("-f"); err != nil {
		return fmt.Errorf("callreel diff: %w", err)
	}
	changes := reel.Compare(sums[0].Functions, sums[1].Functions)
	reel.TellOffs(changes, files[0], files[1], demangle.Name)
	slices.SortStableFunc(changes, func(a, b reel.FunctionChange) int { return cmp.Compare(key(&b), key(&a)) })
	d := diff{sums: sums, all: changes, shown: changes, states: sums[0].HasStates && sums[1].HasStates}
	for i := range files {
		d.off[i] = len(files[i].OffIn(viewer.Recorded(files[i])))
	}
	d.slower, d.compared = reel.Slowdown(changes, d.states)
	if len(f.functions) == 0 && (files[0].HasMarks() || files[1].HasMarks()) {
		d.spans = compareSpans(files[0].SummarizeMarks(reel.MarkSummaryOptions{}), files[1].SummarizeMarks(reel.MarkSummaryOptions{}))
	}
	if f.limit > 0 {
		d.shown = changes[:min(f.limit, len(changes))]
	}
	write := d.text
	if f.json {
		write = d.json
	}
	if err := write(w); err != nil {
		return err
	}
	return d.tooSlow(float64(f.failOver))
}

// tooSlow is an error if B is slower by more than a share; 0 for none.
func (d *diff) tooSlow(most float64) error {
	switch {
	case most == 0 || d.slower <= most && d.compared > 0:
		return nil
	case d.compared == 0:
		return &exitError{exitFailed, errors.New("callreel diff: --fail-over: no function was called often enough in both reels to be compared")}
	}
	return &exitError{exitFailed, fmt.Errorf("callreel diff: B is slower by %.1f %%, more than %.1f %%", 100*d.slower, 100*most)}
}

// share is a flag that takes a percentage.
type share float64

func (s *share) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*s)*100, 'g', -1, 64) + "%"
}

func (s *share) Type() string { return "SHARE" }

// Set reads a percentage above 0.
func (s *share) Set(text string) error {
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !isPercent || !(v > 0 && v <= 1e6) {
		return fmt.Errorf("%q is not a share: a percentage above 0, such as 5%%", text)
	}
	*s = share(v / 100)
	return nil
}

// diff is what is written.
type diff struct {
	sums  [2]*reel.Summary
	all   []reel.FunctionChange
	shown []reel.FunctionChange
	// slower is by what share B is slower in the functions that were compared; states says that this is of time on a CPU.
	slower   float64
	compared int
	states   bool
	spans    []spanChangeJSON
	off      [2]int // how many functions were off for some time
}

// split adds up the parts of what B's functions have more time of their own.
func (d *diff) split() (p reel.ChangeParts, cpu, ready, blocked int64) {
	for i := range d.all {
		q := d.all[i].Parts()
		p.MoreCalls, p.Slower, p.New, p.Gone, p.Off = p.MoreCalls+q.MoreCalls, p.Slower+q.Slower, p.New+q.New, p.Gone+q.Gone, p.Off+q.Off
		c, r, b := d.all[i].DeltaStates()
		cpu, ready, blocked = cpu+c, ready+r, blocked+b
	}
	return p, cpu, ready, blocked
}

// json streams the differences; the keys are promised.
func (d *diff) json(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("{")
	err := jsonList(b, "functions", len(d.shown), func(i int) any { return viewer.Change(&d.shown[i]) })
	if err != nil {
		return err
	}
	if d.spans != nil {
		b.WriteString(",\n")
		if err := jsonList(b, "spans", len(d.spans), func(i int) any { return &d.spans[i] }); err != nil {
			return err
		}
	}
	a, z := d.sums[0], d.sums[1]
	b.WriteString(",\n")
	for i, s := range [...]*reel.Summary{a, z} {
		off := ""
		if d.off[i] > 0 {
			off = fmt.Sprintf(",\"functions_off\":%d", d.off[i])
		}
		fmt.Fprintf(b, "%q:{\"calls\":%d,\"duration_ns\":%d,\"dropped\":%d%s},", [...]string{"a", "b"}[i], s.Calls, s.Duration, s.DroppedEntries, off)
	}
	p, cpu, ready, blocked := d.split()
	fmt.Fprintf(b, "\n\"split\":{\"more_calls_ns\":%d,\"slower_calls_ns\":%d,\"new_path_ns\":%d,\"missing_path_ns\":%d", p.MoreCalls, p.Slower, p.New, p.Gone)
	if p.Off != 0 {
		fmt.Fprintf(b, ",\"off_ns\":%d", p.Off)
	}
	if d.states {
		fmt.Fprintf(b, ",\"cpu_ns\":%d,\"ready_ns\":%d,\"blocked_ns\":%d", cpu, ready, blocked)
	}
	fmt.Fprintf(b, "},\"slower_share\":%.6f,\"compared\":%d}\n", d.slower, d.compared)
	return b.Flush()
}

// text writes a table for people.
func (d *diff) text(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%11s %21s %21s %21s %23s  %s\n", "slower by", "self a call", "p50", "p99", "calls", "function")
	for i := range d.shown {
		c := &d.shown[i]
		fmt.Fprintf(b, "%11s %21s %21s %21s %23s  %s!%s%s\n", signedSpan(c.Slower),
			fromTo(c, func(f *reel.FunctionSummary) string { return span(f.EndedSelf() / max(1, f.Ended())) }),
			fromTo(c, ofWhole(func(f *reel.FunctionSummary) uint64 { return f.P50 })),
			fromTo(c, ofWhole(func(f *reel.FunctionSummary) uint64 { return f.P99 })),
			fromTo(c, func(f *reel.FunctionSummary) string { return count(f.Calls) }), printable(c.Module), printable(c.Name), offText(c))
	}
	if n := len(d.all) - len(d.shown); n > 0 {
		fmt.Fprintf(b, "and %s\n", things(uint64(n), "other function"))
	}
	d.spanTable(b)
	p, cpu, ready, blocked := d.split()
	unknown := ""
	if p.Off != 0 {
		unknown = fmt.Sprintf(", %s in functions that were off in one of them", signedSpan(p.Off))
	}
	fmt.Fprintf(b, "B has %s of own time more: %s by more calls, %s by slower ones, %s in functions that only B has, %s in those that only A has%s\n",
		signedSpan(p.MoreCalls+p.Slower+p.New+p.Gone+p.Off), signedSpan(p.MoreCalls), signedSpan(p.Slower), signedSpan(p.New), signedSpan(p.Gone), unknown)
	on := ""
	if d.states {
		fmt.Fprintf(b, "of it %s on a CPU, %s ready, %s blocked\n", signedSpan(cpu), signedSpan(ready), signedSpan(blocked))
		on = " on a CPU"
	}
	if d.compared > 0 {
		fmt.Fprintf(b, "calls of the %s that both have take %+.1f %% of own time%s\n", things(uint64(d.compared), "function"), 100*d.slower, on)
	}
	for i, name := range [...]string{"A", "B"} {
		s := d.sums[i]
		off := ""
		if n := uint64(d.off[i]); n > 0 {
			off = fmt.Sprintf("; %s %s off for some time", things(n, "function"), wasWere(n))
		}
		fmt.Fprintf(b, "%s: %s in %s; %s dropped%s\n", name, things(s.Calls, "call"), span(s.Duration), count(s.DroppedEntries), off)
	}
	if d.off != [2]int{} {
		b.WriteString("Functions that were off are not gone: their calls then weren't recorded, and their time counts as their callers' own.\n")
	}
	return b.Flush()
}

// offText says in which reels a function was off.
func offText(c *reel.FunctionChange) string {
	switch {
	case c.OffA && c.OffB:
		return "  (off in both for some time)"
	case c.OffA:
		return "  (off in A for some time)"
	case c.OffB:
		return "  (off in B for some time)"
	}
	return ""
}

// fromTo writes what something was in A and is in B.
func fromTo(c *reel.FunctionChange, text func(*reel.FunctionSummary) string) string {
	of := func(f *reel.FunctionSummary) string {
		if f == nil {
			return "-"
		}
		return text(f)
	}
	return of(c.A) + " > " + of(c.B)
}

// ofWhole writes a time that only calls that were seen whole have.
func ofWhole(of func(*reel.FunctionSummary) uint64) func(*reel.FunctionSummary) string {
	return func(f *reel.FunctionSummary) string {
		if f.Complete == 0 {
			return "-"
		}
		return span(of(f))
	}
}

// signedSpan writes a difference of times.
func signedSpan(ns int64) string {
	if ns < 0 {
		return "-" + span(uint64(-ns))
	}
	return span(uint64(ns))
}
