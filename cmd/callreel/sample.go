package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/export"
	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/sampler"
)

// sampleFlags are the flags of sample.
type sampleFlags struct {
	pid      processID
	rate     int
	duration time.Duration
	format   string
	output   string
	force    bool
	mode     fileMode
	wall     bool
	stack    size
	raw      bool
	json     bool
	summary  string
	memory   memoryLimit

	debugDirs []string
}

func newSample() *cobra.Command {
	f := &sampleFlags{}
	c := &cobra.Command{
		Use:   "sample -p PID | -- CMD [ARG…]",
		Short: "Sample the stacks of a process at a rate",
		Long: `Sample takes the stack of each running thread so many times a second until Ctrl-C, the end of -d, or the end of the
process, and writes how often each stack was seen. New threads and processes are followed. The process isn't stopped and
needs no frame pointers: the kernel copies registers and a piece of the stack, which are walked by call frame
information. A thread is sampled each time it has run for a period on a processor. A higher -r also catches threads that
run for a shorter time.

With --wall all threads are sampled, whether they run or wait. A thread that runs is stopped for some tens of
microseconds. A thread that waits is looked at where it is, and stopped at most once in a wait. Where the kernel permits
no perf events, sample works in this way without --wall, too, and says so.

Code of JIT compilers has the names of /tmp/perf-PID.map or of a jitdump file, if the process has written one (node
--perf-basic-prof or --perf-prof).

` + liveNaming + `
Of a command and of what was loaded meanwhile it is fetched after sampling.

Formats:
  pprof    for go tool pprof
  folded   a line for each stack, for flame graphs

With CMD the exit code is CMD's own, 128 and the signal's number if a signal killed it, or 127 if there is no such
command.`,
		Example: `  callreel sample -p 1234 -d 10s -o slow.pb.gz
  callreel sample -r 999 --format folded -o ls.folded -- ls -lR /usr
  callreel sample -p 1234 -d 10s --wall -o waits.pb.gz`,
		Args: f.arguments,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	fl := c.Flags()
	fl.SetInterspersed(false) // what follows CMD is CMD's
	addPID(fl, &f.pid, "the process to look at, by its `PID`")
	fl.IntVarP(&f.rate, "rate", "r", 0, fmt.Sprintf("take samples at this rate, `HZ` (default %d, with --wall %d)", sampler.DefaultRate, sampler.DefaultWallRate))
	fl.DurationVarP(&f.duration, "duration", "d", 0, "end after this time, such as 5s or 1m30s")
	fl.StringVar(&f.format, "format", "pprof", "write in this `FORMAT`: pprof or folded")
	fl.StringVarP(&f.output, "output", "o", "", "write to the file `OUT`; - is stdout")
	fl.BoolVarP(&f.force, "force", "f", false, "replace the file if it exists")
	addMode(fl, &f.mode)
	fl.BoolVar(&f.wall, "wall", false, "sample threads that wait, too")
	fl.Var(&f.stack, "stack", "how much of the stack a sample keeps (default 32K)")
	fl.BoolVar(&f.raw, "raw", false, "write images and addresses, without names")
	fl.BoolVar(&f.json, "json", false, "write the summary as one JSON object to stdout")
	f.memory.add(fl)
	addDebugDirs(fl, &f.debugDirs)
	fl.StringVar(&f.summary, "summary", "", "write the summary as JSON to this `FILE`, for CMD, which has stdout to itself")
	return c
}

// arguments asks for a process or a command, not both, and for numbers that make sense.
func (f *sampleFlags) arguments(c *cobra.Command, args []string) error {
	most := sampler.MaxRate
	if f.wall {
		most = sampler.MaxWallRate
	}
	switch {
	case f.pid > 0 && len(args) > 0:
		return usageError("callreel sample: give either -p PID or -- CMD, not both")
	case f.pid == 0 && len(args) == 0:
		return usageError("callreel sample: give -p PID or -- CMD; see callreel sample --help")
	case len(args) > 0 && c.ArgsLenAtDash() < 0:
		return usageError("callreel sample: put -- before the command: callreel sample [FLAGS] -- %s", strings.Join(args, " "))
	case f.duration < 0:
		return usageError("callreel sample: -d %v: sampling can't end before it begins", f.duration)
	case c.Flags().Changed("rate") && (f.rate < 1 || f.rate > most):
		return usageError("callreel sample: -r %d: from 1 to %d samples a second can be taken", f.rate, most)
	case f.stack > sampler.MaxStackSize:
		return usageError("callreel sample: --stack %d: at most %d bytes can be kept", f.stack, sampler.MaxStackSize)
	case f.stack > 0 && f.stack < 512:
		return usageError("callreel sample: --stack %d: less than 512 bytes hold no stack", f.stack)
	case sampleFormats[f.format] == nil:
		return usageError("callreel sample: --format %s: there is no such format, only: folded, pprof", f.format)
	case f.output == "":
		return usageError("callreel sample: give -o OUT, a file, or - for stdout")
	case f.output == "-" && (f.json || len(args) > 0):
		return usageError("callreel sample: stdout can't be both: give -o a file")
	}
	return nil
}

func (f *sampleFlags) run(c *cobra.Command, args []string) (err error) {
	// Seen to when it is written, too, but that is late, when all is done.
	if f.output != "-" {
		err := outfile.Check(f.output, outfile.Options{Force: f.force, Into: true})
		switch {
		case errors.Is(err, fs.ErrExist):
			return usageError("callreel sample: %s: %w; --force replaces it, -o writes another", f.output, fs.ErrExist)
		case err != nil:
			return fmt.Errorf("callreel sample: -o: %w", err)
		}
	}
	o := sampler.SampleOptions{
		PID: int(f.pid), Command: args, Rate: f.rate, Duration: f.duration, Wall: f.wall, StackSize: int(f.stack),
		Memory: object.NewAllowance(f.memory.limit()),
	}
	if len(args) > 0 {
		o.Ignored = ignoredAtStart()
	}
	ctx, stop := untilSignal(c.Context())
	defer stop()
	status := newStatus(c.ErrOrStderr())
	if len(args) > 0 {
		status.quiet() // the command writes to the same terminal
	}
	o.Notice, o.Progress = status.notice, status.sampling
	names, err := newStackNames(c.Context(), c.CommandPath(), status, f.memory, searched(int(f.pid), f.debugDirs))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, names.Close()) }()
	if !f.raw {
		o.Names = names
	}
	profile, err := sampler.Sample(ctx, o)
	status.clear()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, profile.Close()) }()
	s, err := f.finish(c, profile, names, status)
	// A command that goes on has the terminal, and we wait for it as a shell does.
	code, werr := profile.Wait(ctx)
	if err == nil {
		err = f.write(c, s, len(args) > 0, code)
	}
	if err = errors.Join(err, werr); code != 0 {
		return &exitError{code, err}
	}
	return err
}

// finish names and writes the profile.
func (f *sampleFlags) finish(c *cobra.Command, p *sampler.Profile, names *sampler.MapNames, status *status) (*sampleSummary, error) {
	for _, problem := range p.Problems {
		status.notice("%v", problem)
	}
	if p.UserOnly {
		status.notice("time in the kernel is not seen: kernel.perf_event_paranoid=1 or CAP_PERFMON (root) would show it")
	}
	if p.Throttled > 0 {
		status.notice("the kernel has held the clock %s: -r asks for too much of it", things(p.Throttled, "time"))
	}
	if text := unseen(p); text != "" {
		status.notice("%s", text)
	}
	if !f.raw { // of what wasn't there before
		during, done := untilNextSignal(c.Context())
		names.Prepare(during, imagesOf(p))
		done()
	}
	stacks, err := f.stacks(p, names)
	status.clear()
	if err != nil {
		return nil, err
	}
	written, err := f.export(c, stacks)
	return f.summarize(p, written), err
}

// unseen says that a profile stands for less than half of what the process has done.
func unseen(p *sampler.Profile) string {
	const some = 10 // periods; less may be chance
	period := time.Second / time.Duration(p.Rate)
	if p.UserOnly || p.Unseen <= some*period || 2*p.Unseen <= p.CPU {
		return ""
	}
	return fmt.Sprintf("the process has used %s of processor time, of which samples stand for %s: threads that run for less than %s each are not seen, a higher -r shows more of them",
		span(uint64(p.CPU)), span(uint64(p.CPU-p.Unseen)), span(uint64(period)))
}

// sampling shows how sampling gets on.
func (s *status) sampling(p sampler.Progress) {
	s.show("%5.1fs  %s  %s lost  %s   Ctrl-C ends", p.Elapsed.Seconds(), things(p.Samples, "sample"), count(p.Lost), things(uint64(p.Threads), "thread"))
}

// sampleFormats are the formats by the name that --format has for them.
var sampleFormats = map[string]stacksWriter{"pprof": export.PProf, "folded": export.Folded}
