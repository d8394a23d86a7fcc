package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
)

// recordFlags are the flags of record.
type recordFlags struct {
	pid      processID
	choice   choiceFlags
	duration time.Duration
	output   string
	force    bool
	mode     fileMode
	ring     size
	clock    string
	lossless bool
	lazy     bool
	eager    bool
	follow   bool
	noSched  bool
	paused   bool
	args     []string
	returns  []string
	markers  markerFlags
	imports  importFlags
	when     []string
	json     bool
	summary  string
	view     bool
	noOpen   bool
	armed    armedFlags
	budget   budgetFlags
	filters  filterFlags
}

func newRecord() *cobra.Command {
	f := &recordFlags{}
	c := &cobra.Command{
		Use:   "record -p PID | -- CMD [ARG…]",
		Short: "Record every call of a process",
		Long: `Record attaches to the process, or starts CMD. It writes the entry and the exit of every chosen function to a reel until
Ctrl-C, the end of -d, or the end of the process. Then it detaches, checks that the text is as it was, and adds an index
to the reel, so that view can open it at once.

A call is dropped, and counted, if the ring is full. With --lossless the process waits instead.

Filters act in the process itself: calls that they omit take no space in the ring. --min keeps calls that take at
least that long, their callers, and calls that are open at the end; it needs --clock full. --threads goes by the name
that a thread has when it calls. --depth and --inside go by the stack at each entry and need no clock. A function that
longjmp or an exception has unwound no longer counts as a caller. A second stack of a thread (of a signal handler, a
coroutine) counts for itself. Calls that filters omit are counted nowhere, but for --every: it counts all
calls that the other filters let through, and report shows that number.

With --when nothing is written until a condition comes true. Conditions are 'F > 5ms' (a call of F took longer, or has
not returned a second after that), 'F == 0' or 'F < 0' (what F returned), F (any call), 'F #100' (the 100th call),
'marker PROVIDER:NAME' (it is passed), 'span TITLE > 5ms' (the span took longer, of markers that are recorded) and
stall:200ms (the main thread makes no progress). Then the last --keep of all threads is dumped to the next
slow-NNNN.reel in the folder -o, and recording goes on. The end of the process, SIGUSR2 and callreel dump make a dump,
too. What the rings hold no more is kept encoded, in --memory: callreel says for how long that lasts. --with PID arms
another process in the same way: each dump, whichever process it is made for, has the same time of all of them.

--budget 2% keeps what recording costs within that share of the processor time that the process uses: functions that are
called very often and tell little are left out, and looked at again when the load changes. --keep-function names some
that stay.

--args and --ret record values with the types that DWARF gives them. F is a function's name or a glob. Without
parentheses it means all arguments, or the result. The wanted values are in the parentheses: name, c->argc, s.len, v[2],
*p, buf[:16] (the first 16 bytes), buf[:size] (as many bytes as the argument size says), and with --ret parts of the
result, return->size. Strings and ranges are cut at 64 bytes. Without DWARF there are arg1 to arg6 (arm64: arg8), farg1
to farg8 and ret, as signed numbers. Add :u, :x, :f or :s to see a value, also a typed one, as unsigned, hexadecimal,
float or string. A value that can't be read is shown as "?".

` + liveNaming + `

--markers records the passings of markers that the program has compiled in (SDT, USDT; see callreel markers):
provider:name or a glob, with the wanted arguments in parentheses: 'python:line(arg1:s, arg3)'. Without parentheses
all are recorded, as numbers. Alone it records no calls: -f '*' adds all functions. Names make spans, X__start and
X__done, say; --pair 'BEGIN=END' makes others. Semaphores are counted up while it records.

--imports records calls by what their callers call through: the entries of their global offset tables, see callreel
imports. LIB:FUNC names a library that is called and its function; both are globs. The library's code isn't changed,
so it is for functions that can't be probed. Alone it records no others. A call's end is seen where it returns to.

--if compares integers, enums, booleans and pointers with numbers, 'c', names of an enum, true and null; && joins
conditions. Without "F:" the condition is for the functions of --args. A call for which a condition is false is
omitted, at little cost if the value is in a register.

Files are readable by you alone, since values may be secrets. --mode 0640 gives them that mode, and opens a folder that
is made for dumps to the same people. Nothing is written through a symbolic link.

With CMD the exit code is CMD's own, 128 and the signal's number if a signal killed it, or 127 if there is no such
command.`,
		Example: `  callreel record -p 1234 -d 5s -o slow.reel
  callreel record -p 1234 -m redis-server -f '*Command'
  callreel record -p 1234 --args 'parse(name, buf[:size])' --ret parse --if 'parse: size > 4096'
  callreel record -p 1234 --when 'call > 20ms' --keep 2s -o dumps
  callreel record -p 1234 --when 'handle > 50ms' --with 1240 -o dumps
  callreel record -o ls.reel -- ls -l`,
		Args: f.arguments,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	fl := c.Flags()
	fl.SetInterspersed(false) // what follows CMD is CMD's
	addPID(fl, &f.pid, "the process to attach to, by its `PID`")
	f.choice.add(fl)
	fl.DurationVarP(&f.duration, "duration", "d", 0, "end after this time, such as 5s or 1m30s")
	fl.StringVarP(&f.output, "output", "o", "", "write the reel to this `FILE` (default NAME-PID.reel or CMD.reel); with --when a folder")
	fl.BoolVar(&f.force, "force", false, "replace the reel if it exists")
	addMode(fl, &f.mode)
	fl.Var(&f.ring, "ring", "memory for the events of all threads that wait to be written (default 64M)")
	fl.StringVar(&f.clock, "clock", "full", "which events have a time, a `MODE`: full (all of them), exit or none")
	f.filters.add(fl)
	fl.BoolVar(&f.lossless, "lossless", false, "let the process wait when the ring is full, instead of dropping calls")
	fl.BoolVar(&f.lazy, "lazy", false, fmt.Sprintf("make a function's probe on its first call (the default for more than %d functions)", recorder.LazyLimit))
	fl.BoolVar(&f.eager, "eager", false, "make all probes before recording begins")
	fl.BoolVar(&f.follow, "follow", false, "record forked children, and the programs that they start, in the same reel")
	fl.BoolVar(&f.paused, "paused", false, "begin with a pause: record nothing until callreel resume, or the program's CALLREEL_RESUME")
	fl.BoolVar(&f.noSched, "no-sched", false, "don't record when threads run, are ready and wait")
	fl.StringArrayVar(&f.args, "args", nil, "record arguments: the `SPEC` F means all of them, 'F(name, c->argc)' these (repeatable)")
	fl.StringArrayVar(&f.returns, "ret", nil, "record results: the `SPEC` F means the result, 'F(return->size)' a part (repeatable)")
	fl.StringArrayVar(&f.when, "if", nil, "only calls for which this `CONDITION` holds, such as 'F: size > 4096' (repeatable)")
	fl.BoolVar(&f.json, "json", false, "write the summary as one JSON object to stdout")
	fl.StringVar(&f.summary, "summary", "", "write the summary as JSON to this `FILE`, for CMD, which has stdout to itself")
	f.markers.add(fl)
	f.imports.add(fl)
	f.armed.add(fl)
	f.budget.add(fl)
	fl.BoolVar(&f.view, "view", false, "show the reel in the browser while it is written, and afterwards until Ctrl-C")
	fl.BoolVar(&f.noOpen, "no-open", false, "with --view: don't open the browser, only print the page's address to stderr")
	return c
}

// arguments asks for a process or a command, not both.
func (f *recordFlags) arguments(c *cobra.Command, args []string) error {
	switch {
	case f.pid > 0 && len(args) > 0:
		return usageError("callreel record: give either -p PID or -- CMD, not both")
	case f.pid == 0 && len(args) == 0:
		return usageError("callreel record: give -p PID or -- CMD; see callreel record --help")
	case len(args) > 0 && c.ArgsLenAtDash() < 0:
		return usageError("callreel record: put -- before the command: callreel record [FLAGS] -- %s", strings.Join(args, " "))
	case f.lazy && f.eager:
		return usageError("callreel record: give either --lazy or --eager, not both")
	case f.noOpen && !f.view:
		return usageError("callreel record: --no-open goes with --view")
	case f.armed.isArmed() && f.view:
		return usageError("callreel record: --view shows a recording while it is written; with --when there is none: callreel view shows a dump")
	case f.armed.isArmed() && (f.follow || f.lossless || f.clock != "full"):
		return usageError("callreel record: --when goes with neither --follow nor --lossless nor another --clock than full")
	case f.armed.wrong(f.pid) != "":
		return usageError("callreel record: %s", f.armed.wrong(f.pid))
	case f.filters.badGlob() != "":
		return usageError("callreel record: --threads %s: not a glob", f.filters.badGlob())
	case c.Flags().Changed("depth") && (f.filters.depth < 1 || f.filters.depth > recorder.MaxDepth):
		return usageError("callreel record: --depth %d: give 1 to %d", f.filters.depth, recorder.MaxDepth)
	case f.filters.min < 0:
		return usageError("callreel record: --min %v: no call takes less than no time", f.filters.min)
	case f.filters.min > 0 && f.clock != "full":
		return usageError("callreel record: --min needs the times of entries and exits: --clock full")
	case (f.filters.depth > 0 || len(f.filters.inside) > 0 || f.filters.every > 0) && len(f.when) > 0:
		return usageError("callreel record: --depth, --inside and --every don't go with --if")
	case f.armed.isArmed() && (len(f.filters.threads) > 0 || f.filters.every > 0):
		return usageError("callreel record: --when goes with neither --threads nor --every")
	case f.markers.wrong(f.clock) != "":
		return usageError("callreel record: %s", f.markers.wrong(f.clock))
	case f.budget.wrong() != "":
		return usageError("callreel record: %s", f.budget.wrong())
	case f.budget.share > 0 && (f.follow || f.clock != "full" || len(f.when) > 0 || f.filters.decide()):
		return usageError("callreel record: --budget goes with none of --follow, --if, --min, --depth, --inside, --every and another --clock than full")
	case len(f.imports.imports) > 0 && f.follow:
		return usageError("callreel record: --imports records one process: it doesn't go with --follow")
	case f.duration < 0:
		return usageError("callreel record: -d %v: a recording can't end before it begins", f.duration)
	}
	return nil
}

func (f *recordFlags) run(c *cobra.Command, args []string) error {
	status := newStatus(c.ErrOrStderr())
	if f.view {
		return f.recordShown(c, args, status)
	}
	return f.record(c, args, status, nil)
}

// record records; page is nil, or shows the reel meanwhile.
func (f *recordFlags) record(c *cobra.Command, args []string, status *status, page *liveView) error {
	clock, err := reel.ParseClockMode(f.clock)
	if err != nil {
		return usageError("callreel record: --clock %s: use full, exit or none", f.clock)
	}
	if f.output == "" {
		f.output = recorder.DefaultOutput(int(f.pid), args)
		if f.armed.isArmed() {
			f.output = strings.TrimSuffix(f.output, ".reel") + ".dumps"
		}
	}
	// The recorder sees to that, too, but late: after long planning, or when a command is stopped at its entry.
	if err := f.checkOutput(); err != nil {
		return err
	}
	var ignored []syscall.Signal
	if len(args) > 0 {
		ignored = ignoredAtStart()
	}
	ctx, stop := untilSignal(c.Context())
	defer stop()
	arming, err := f.armed.arming(ctx, status)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		status.quiet() // the command writes to the same terminal
	}
	collect := collectLater()
	progress := status.recording
	if page != nil {
		progress = page.progress(progress)
	}
	choice, err := f.choice.choice(c.CommandPath(), f.pid, status)
	if err != nil {
		return err
	}
	choice.NoFunctions = f.markersAlone(c.Flags())
	f.budget.allowNaps(1 + len(f.armed.with))
	status.show("reading the files of process %d", f.pid)
	result, err := recorder.Record(ctx, recorder.Options{
		PID: int(f.pid), Command: args, Ignored: ignored, Choice: choice,
		Output: f.output, Force: f.force, Mode: fs.FileMode(f.mode), Duration: f.duration, RingSize: uint64(f.ring), Clock: clock, Lossless: f.lossless, Paused: f.paused, Lazy: f.laziness(), Follow: f.follow,
		Scheduling: f.scheduling(),
		Filters:    f.filters.filters(), Armed: arming, Budget: f.budget.budget(),
		Args: f.args, Returns: f.returns, Conditions: f.when,
		Markers: f.markers.markers, Pairs: f.markers.pairs, Imports: f.imports.imports,
		Tool:    "callreel " + versionText(),
		Started: collect, Index: untilNextSignal, Notice: status.notice, Progress: progress,
	})
	f.armed.finish()
	if page != nil {
		page.recorded(c.Context())
	}
	status.clear()
	if result == nil {
		return endedEarly(ctx, err)
	}
	if page != nil {
		page.begin() // the recording may have been too short for any progress
	}
	if werr := f.write(c, result, len(args) > 0); err == nil {
		err = werr
	}
	if err == nil && !result.TextVerified {
		err = errTextChanged
	}
	if result.ExitCode != 0 {
		return &exitError{result.ExitCode, err}
	}
	return err
}

// checkOutput refuses a name that somebody else has.
func (f *recordFlags) checkOutput() error {
	if f.armed.isArmed() {
		err := outfile.CheckFolder(f.output)
		if errors.Is(err, syscall.ENOTDIR) {
			return usageError("callreel record: %s: %w, and is no folder; -o names another for the dumps", f.output, fs.ErrExist)
		}
		return err
	}
	err := outfile.Check(f.output, outfile.Options{Force: f.force})
	if errors.Is(err, fs.ErrExist) {
		return usageError("callreel record: %s: %w; --force replaces it, -o writes another", f.output, fs.ErrExist)
	}
	return err
}

// collectLater makes the garbage collector run but seldom until collect is called. Nearly all that a recording's preparation allocates is
// kept until it is over, and a program with a million functions takes a fifth less time without six rounds of marking it. While it records
// callreel allocates so little that it would keep for minutes what only planning needs, so that is given back then.
func collectLater() (collect func()) {
	const percent = 800
	before := debug.SetGCPercent(percent)
	return func() {
		debug.SetGCPercent(before)
		go debug.FreeOSMemory()
	}
}

func (f *recordFlags) laziness() recorder.Laziness {
	switch {
	case f.lazy:
		return recorder.Lazy
	case f.eager:
		return recorder.Eager
	}
	return recorder.LazyAuto
}

func (f *recordFlags) scheduling() recorder.SchedulingMode {
	if f.noSched {
		return recorder.SchedulingOff
	}
	return recorder.SchedulingAuto
}

// recording shows how a recording gets on.
func (s *status) recording(p recorder.Progress) {
	if p.Armed {
		s.show("armed %5.1fs  %s  %s   Ctrl-C ends, SIGUSR2 dumps", p.Elapsed.Seconds(), things(uint64(p.Triggers.Dumped), "dump"), things(uint64(p.Threads), "thread"))
		return
	}
	if p.Ending {
		s.show("leaving the process")
		return
	}
	if p.Indexing > 0 {
		s.show("indexing the reel: %d %%   Ctrl-C leaves that to view", p.Indexed*100/p.Indexing)
		return
	}
	s.show("%5.1fs  %s calls  %s dropped  %s  %s   Ctrl-C ends", p.Elapsed.Seconds(), count(p.Calls), count(p.Dropped),
		things(uint64(p.Threads), "thread"), bytesText(p.Bytes))
}

// summary is what --json and --summary write; the keys are promised.
type summary struct {
	Functions struct {
		Seen     int            `json:"seen"`
		Traced   int            `json:"traced"`
		Compiled int            `json:"compiled"`
		Refused  map[string]int `json:"refused"`
	} `json:"functions"`
	// Images are those that were there when recording began.
	Images []coveredImage `json:"images"`
	// Markers is there with --markers.
	Markers *markersSummary `json:"markers,omitempty"`
	// Imports is there with --imports.
	Imports      *importsSummary `json:"imports,omitempty"`
	Calls        uint64          `json:"calls"`
	Marks        uint64          `json:"marks,omitempty"`
	Events       uint64          `json:"events"`
	Dropped      uint64          `json:"dropped"`
	Ring         int64           `json:"ring,omitempty"`
	RingEnough   int64           `json:"ring_enough,omitempty"`
	LostExits    uint64          `json:"lost_exits,omitempty"`
	Torn         uint64          `json:"torn_events,omitempty"`
	Bytes        int64           `json:"bytes"`
	Threads      int             `json:"threads"`
	AttachStopMS float64         `json:"attach_stop_ms"`
	DetachStopMS float64         `json:"detach_stop_ms"`
	TextVerified bool            `json:"text_verified"`
	Ended        bool            `json:"ended"`
	Sandboxed    bool            `json:"sandboxed,omitempty"`
	Left         string          `json:"left,omitempty"`
	File         string          `json:"file"`
	ExitCode     *int            `json:"exit_code,omitempty"`
	// Scheduling is missing with --no-sched.
	Scheduling *schedulingSummary `json:"scheduling,omitempty"`
	// Processes is there with --follow.
	Processes *processesSummary `json:"processes,omitempty"`
	// Triggers, Dumps and Past are there with --when.
	Triggers *triggersSummary `json:"triggers,omitempty"`
	Dumps    []string         `json:"dumps,omitempty"`
	Past     *pastSummary     `json:"past,omitempty"`
	// Budget is there with --budget, unless it could not be kept.
	Budget *budgetSummary `json:"budget,omitempty"`
	// Libraries is there when libraries came or went while recording.
	Libraries *librariesSummary `json:"libraries,omitempty"`
}

// schedulingSummary is what was learned of when threads run, are ready and wait.
type schedulingSummary struct {
	Source   string `json:"source"`
	Reason   string `json:"reason,omitempty"`
	Switches uint64 `json:"switches"`
	Lost     uint64 `json:"lost"`
	Waits    uint64 `json:"waits"`
}

// processesSummary is what came of the processes that were followed.
type processesSummary struct {
	Forked     int `json:"forked"`
	Executed   int `json:"executed"`
	Late       int `json:"late"`
	Unrecorded int `json:"unrecorded"`
}

// librariesSummary is what came and went while recording.
type librariesSummary struct {
	Loaded        int     `json:"loaded"`
	Unloaded      int     `json:"unloaded"`
	Stops         int     `json:"stops"`
	StopMS        float64 `json:"stop_ms"`
	LongestStopMS float64 `json:"longest_stop_ms"`
}

func (f *recordFlags) summarize(r *recorder.Result, command bool) *summary {
	s := &summary{
		Markers: f.markers.summarize(r), Imports: f.imports.summarize(r), Calls: r.Calls, Marks: r.Marks, Events: r.Events, Dropped: r.Dropped, Ring: r.Ring, RingEnough: r.RingEnough, LostExits: r.LostExits, Torn: r.Torn,
		Bytes: r.Bytes, Threads: r.Threads,
		AttachStopMS: milliseconds(r.AttachStop), DetachStopMS: milliseconds(r.DetachStop),
		TextVerified: r.TextVerified, Ended: r.Ended, Sandboxed: r.Sandboxed, Left: r.Left, File: f.output,
	}
	s.Functions.Seen, s.Functions.Traced, s.Functions.Compiled = r.Seen, r.Traced, r.Made
	s.Functions.Refused = r.Refused
	s.Images = coveredImages(r.Images)
	if s.Functions.Refused == nil {
		s.Functions.Refused = map[string]int{}
	}
	if f.follow {
		p := r.Processes
		s.Processes = &processesSummary{p.Forked, p.Executed, p.Late, p.Unrecorded}
	}
	if g := r.Scheduling; g != nil {
		s.Scheduling = &schedulingSummary{g.Source, g.Reason, g.Switches, g.Lost, g.Waits}
	}
	if l := r.Libraries; l != (recorder.Libraries{}) {
		s.Libraries = &librariesSummary{l.Loaded, l.Unloaded, l.Stops, milliseconds(l.Stopped), milliseconds(l.Longest)}
	}
	s.Budget = budgetOf(r.Budget)
	if f.armed.isArmed() {
		t := r.Triggers
		s.Triggers, s.Dumps = &triggersSummary{t.Fired, t.Dumped, t.Suppressed, milliseconds(f.armed.frozen)}, f.armed.files()
		p := r.Past
		s.Past = &pastSummary{p.Memory, p.Used, p.Events, p.Lasts.Nanoseconds(), p.ReachesBack.Nanoseconds()}
	}
	if command {
		s.ExitCode = &r.ExitCode
	}
	return s
}

// write writes the summary where the flags want it.
func (f *recordFlags) write(c *cobra.Command, r *recorder.Result, command bool) error {
	s := f.summarize(r, command)
	if err := writeSummary(f.summary, f.mode, s); err != nil {
		return err
	}
	switch {
	case f.json:
		return writeJSON(c.OutOrStdout(), s)
	case command && f.summary == "":
		return f.say(c.ErrOrStderr(), r, command) // stdout is the command's
	case f.summary == "":
		return f.say(c.OutOrStdout(), r, command)
	}
	return nil
}

// ringHint says what would have kept calls from being dropped.
func ringHint(r *recorder.Result) string {
	switch {
	case r.RingEnough == 0:
		return ""
	case r.Scarce:
		return fmt.Sprintf(" (a ring for all of them takes %s: choose fewer functions, or --lossless)", bytesText(r.RingEnough))
	}
	return fmt.Sprintf(" (--ring %dM would have held them)", r.RingEnough>>20)
}

// say writes the summary for people.
func (f *recordFlags) say(w io.Writer, r *recorder.Result, command bool) error {
	const enough = 100_000 // events, for the tables of functions and images not to count
	if f.armed.isArmed() {
		return f.sayArmed(w, r)
	}
	text := fmt.Sprintf("%s: %s%s in %s, %s", printable(f.output), things(r.Calls, "call"), f.markers.counted(r), things(uint64(r.Threads), "thread"), bytesText(r.Bytes))
	if r.Events >= enough {
		text += fmt.Sprintf(" (%.1f bytes an event)", float64(r.Bytes)/float64(r.Events))
	}
	text += fmt.Sprintf(", %s dropped%s\n%s of %s traced%s", count(r.Dropped), ringHint(r), count(uint64(r.Traced)), things(uint64(r.Seen), "function"), f.markers.sites(r)+f.imports.slots(r))
	switch {
	case r.Ended && command:
		text += "; the process has ended\n"
	case r.Ended:
		text += fmt.Sprintf("; stopped %.1f ms to attach; the process has ended\n", milliseconds(r.AttachStop))
	default:
		text += fmt.Sprintf("; stopped %.1f ms to attach, %.1f ms to detach; text verified: %v\n",
			milliseconds(r.AttachStop), milliseconds(r.DetachStop), r.TextVerified)
	}
	text += budgetText(r)
	for i := range r.Images {
		if c := &r.Images[i]; c.Main {
			text += coverageText(c) + "\n"
		}
	}
	if l := r.Libraries; l.Loaded > 0 || l.Unloaded > 0 {
		text += fmt.Sprintf("libraries: %d loaded meanwhile, %d unloaded", l.Loaded, l.Unloaded)
		if l.Stops > 0 {
			text += fmt.Sprintf("; stopped %.1f ms at most for it", milliseconds(l.Longest))
		}
		text += "\n"
	}
	if r.Left != "" {
		text += fmt.Sprintf("stubs stay mapped in the process, unused: %s; callreel detach removes them later\n", printable(r.Left))
	}
	_, err := io.WriteString(w, text)
	return err
}
