package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/export"
	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/symbols/reelnames"
)

// exportFormats write a reel in another format, by the name that --format has for it.
var exportFormats = map[string]func(context.Context, *reel.File, io.Writer, export.Options) error{
	"chrome":     export.Chrome,
	"perfetto":   export.Perfetto,
	"pprof":      export.PProfCalls,
	"speedscope": export.Speedscope,
	"folded":     export.FoldedCalls,
}

// exportWeights are the values of --weight. The time of the clock was called time when there was no other.
var exportWeights = map[string]export.Weight{
	"": export.WeightDefault, "time": export.WeightWall, "wall": export.WeightWall, "calls": export.WeightCalls,
	"cpu": export.WeightCPU, "ready": export.WeightReady, "blocked": export.WeightBlocked,
}

func formatNames() string {
	return strings.Join(slices.Sorted(maps.Keys(exportFormats)), ", ")
}

// exportFlags are the flags of export.
type exportFlags struct {
	format, output string
	weight         string
	split          size
	force, lines   bool
	mode           fileMode
	debugDirs      []string
}

func newExport() *cobra.Command {
	f := &exportFlags{}
	c := &cobra.Command{
		Use:   "export FILE --format FORMAT -o OUT",
		Short: "Write a reel in a format that other tools read",
		Long: `Export writes all calls of a reel to OUT. Formats:

  perfetto    Perfetto's protobuf, for https://ui.perfetto.dev and trace_processor
  chrome      Chrome trace JSON, for chrome://tracing as well; five times as large
  speedscope  for https://www.speedscope.app: the calls of each thread or goroutine in their order
  pprof       how often and how long each stack was called, for go tool pprof
  folded      the same as lines of text, for flamegraph.pl and similar programs

Calls that were open at the end, or that ended without returning, end there. Where the format allows it they are
marked. The file also says what was dropped or damaged, if the format has a place for that.

What markers said is in perfetto and chrome: spans, flows, counters and instants. The other formats have no place for
it, and how much of it there was is said on stderr.

Where the reel has states of threads, perfetto and chrome show them, with page faults. pprof has the CPU time, the time
ready and the time blocked of each stack, speedscope profiles of CPU time and of time blocked beside the wall time.
--weight makes speedscope write one of them alone, and says what folded's numbers are.

` + reelNaming + `

--split writes chrome's JSON into several files, OUT-001, OUT-002 and so on (before the extension). Each has all threads
for a stretch of time.`,
		Example: `  callreel export slow.reel --format perfetto -o slow.pftrace
  callreel export slow.reel --format chrome -o - | gzip > slow.json.gz
  callreel export slow.reel --format chrome --split 200M -o slow.json
  callreel export slow.reel --format pprof -o slow.pb.gz && go tool pprof -http : slow.pb.gz
  callreel export slow.reel --format folded --weight calls -o - | flamegraph.pl > slow.svg
  callreel export slow.reel --format folded --weight blocked -o - | flamegraph.pl > waits.svg`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	fl := c.Flags()
	fl.StringVar(&f.format, "format", "", "write in this `FORMAT`: "+formatNames())
	fl.StringVarP(&f.output, "output", "o", "", "write to the file `OUT`; - is stdout")
	fl.BoolVarP(&f.force, "force", "f", false, "replace the file if it exists")
	addMode(fl, &f.mode)
	fl.Var(&f.split, "split", "chrome: write several files of about this `SIZE`, at least 64K")
	fl.BoolVar(&f.lines, "lines", false, "look for source files and lines of all functions, and write them in all formats but folded")
	addDebugDirs(c.Flags(), &f.debugDirs)
	fl.StringVar(&f.weight, "weight", "", "folded, speedscope: weigh by `WHAT`: wall, cpu, ready or blocked time, or (folded) calls")
	return c
}

func (f *exportFlags) run(c *cobra.Command, path string) error {
	write, ok := exportFormats[f.format]
	_, known := exportWeights[f.weight]
	switch {
	case f.format == "":
		return usageError("callreel export: give --format FORMAT; there is: %s", formatNames())
	case !ok:
		return usageError("callreel export: --format %s: there is no such format, only: %s", f.format, formatNames())
	case f.output == "":
		return usageError("callreel export: give -o OUT, a file, or - for stdout")
	case c.Flags().Changed("split") && f.format != "chrome":
		return usageError("callreel export: --split is for --format chrome only")
	case c.Flags().Changed("split") && f.output == "-":
		return usageError("callreel export: --split writes several files; give -o OUT, a file")
	case c.Flags().Changed("split") && f.split < 64<<10:
		return usageError("callreel export: --split %d: use at least 64K", f.split)
	case !known:
		return usageError("callreel export: --weight %s: use wall, cpu, ready, blocked or calls", f.weight)
	case f.weight == "calls" && f.format == "speedscope":
		return usageError("callreel export: --weight calls is for --format folded only; pprof has the calls")
	case f.lines && f.format == "folded":
		return usageError("callreel export: --lines: --format folded has no place for files and lines")
	case c.Flags().Changed("weight") && f.format != "folded" && f.format != "speedscope":
		return usageError("callreel export: --weight is for --format folded and speedscope only; pprof has them all")
	}
	return f.export(c, path, write)
}

func (f *exportFlags) export(c *cobra.Command, path string, write func(context.Context, *reel.File, io.Writer, export.Options) error) error {
	file, err := reel.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if sameFile(path, f.output) {
		return usageError("callreel export: %s is the reel itself; give -o another file", f.output)
	}
	if err := f.weighable(path, file); err != nil {
		return err
	}
	ctx, stop := untilSignal(c.Context()) // so that half a file is removed
	defer stop()
	status := newStatus(c.ErrOrStderr())
	options := export.Options{Name: demangle.Name, Weight: exportWeights[f.weight]}
	names, err := newReelNames(ctx, c, status, f.debugDirs)
	if err != nil {
		return err
	}
	defer names.Close() // only read from
	names.Lines = reelnames.NoLines
	if f.lines {
		names.Lines = reelnames.AllLines
	}
	file.NameBy(names)
	// Where it costs nothing, what is known is written.
	options.Lines = f.lines || f.format == "pprof" || f.format == "speedscope"
	written := &counter{after: func(n int64) { status.show("%s written   Ctrl-C ends", bytesText(n)) }}
	counted := func(w io.Writer) io.Writer {
		written.Writer = w // one after the other, where there are several
		return written
	}
	ended := func(err error) error {
		status.clear()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	}
	all := func(w io.Writer) error { return ended(write(ctx, file, counted(w), options)) }
	switch {
	case f.split > 0:
		parts := &exportParts{reel: path, output: f.output, options: outfile.Options{Force: f.force, Mode: fs.FileMode(f.mode)}, counted: counted}
		err = parts.done(ended(export.ChromeSplit(ctx, file, int64(f.split), parts.next, options)))
		if err == nil {
			status.notice("%s to %s", parts.name(1), parts.name(len(parts.files)))
		}
	case f.output == "-":
		err = all(c.OutOrStdout())
	default:
		err = writeOutput(f.output, f.force, f.mode, all)
	}
	if err != nil {
		return err
	}
	if toldWhereToLook(f.debugDirs) {
		tellNotFound(status, names)
	}
	f.missing(status, path, file)
	return nil
}

// weighable says why a reel has nothing of what it is to be weighed by.
func (f *exportFlags) weighable(path string, file *reel.File) error {
	switch exportWeights[f.weight] {
	case export.WeightCPU, export.WeightReady, export.WeightBlocked:
	default:
		return nil
	}
	if export.HasWeights(file) {
		return nil
	}
	why := "record it anew, without --no-sched and with a clock"
	if s, ok := file.Scheduling(); ok && s.Reason != "" {
		why = s.Reason
	}
	return fmt.Errorf("callreel export: --weight %s: %s has no states of threads: %s", f.weight, path, why)
}

// missing says what the file can't hold since the reel doesn't.
func (f *exportFlags) missing(status *status, path string, file *reel.File) {
	dropped := uint64(0)
	for _, d := range file.Drops() {
		dropped += d.Entries
	}
	if dropped > 0 {
		status.notice("%s were dropped while recording: they are missing", things(dropped, "call"))
	}
	if text := export.Unrecorded(file); text != "" {
		status.notice("%s: %s", path, text)
	}
	for _, d := range file.Damage() {
		status.notice("%s is damaged: %s", path, d)
	}
	if !file.Closed() {
		status.notice("%s was not ended by its recorder: that is still at work, or was killed", path)
	}
	if left := f.leftOut(file); left != "" {
		status.notice("--format %s has no place for what markers say: left out are %s", f.format, left)
	}
}

// leftOut says how much of markers a format has no place for, "" if it is nothing.
func (f *exportFlags) leftOut(file *reel.File) string {
	if f.format == "chrome" || f.format == "perfetto" || !file.HasMarks() && len(file.Pauses()) == 0 {
		return ""
	}
	s := file.SummarizeMarks(reel.MarkSummaryOptions{})
	var spans, async, flows, values, instants uint64
	for _, x := range s.Spans {
		if x.Async {
			async += x.Count
		} else {
			spans += x.Count
		}
	}
	for _, x := range s.Flows {
		flows += x.In
	}
	for _, x := range s.Counters {
		values += x.Count
	}
	for _, x := range s.Instants {
		instants += x.Count
	}
	var list []string
	for _, x := range []struct {
		n    uint64
		what string
	}{{spans, "span"}, {async, "asynchronous span"}, {flows, "flow"}, {values, "counter value"}, {instants, "instant"}, {uint64(len(file.Pauses())), "pause"}} {
		if x.n > 0 {
			list = append(list, things(x.n, x.what))
		}
	}
	return strings.Join(list, ", ")
}

func sameFile(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// counter tells how much was written.
type counter struct {
	io.Writer
	n     int64
	after func(n int64)
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	c.after(c.n)
	if err != nil {
		return n, fmt.Errorf("after %s: %w", bytesText(c.n), err)
	}
	return n, nil
}
