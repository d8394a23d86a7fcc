package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demangle"
	"github.com/callreel/callreel/reel"
	"github.com/callreel/callreel/viewer"
)

// reportFlags are the flags of report.
type reportFlags struct {
	sort      string
	limit     int
	functions []string
	by        string
	spans     []string
	locks     bool
	off       bool
	json      bool
	debugDirs []string
}

func newReport() *cobra.Command {
	f := &reportFlags{}
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Sum up a reel: calls and times of each function, threads, drops",
		Long: `Report writes a line for each function that was called: its calls, the time in them with the calls that they made
(total) and without (self), and the median (p50), the 99th percentile (p99) and the longest (max) of its calls.

Behind the name are the calls that didn't return. "Ended without returning" (in JSON "implicit") are those that an
exception or longjmp unwound. "Unfinished" are those that were open at the end of their thread or of the recording.
"Open for" is the time until then, and a part of total. It doesn't say how long such a call takes, so it doesn't count
for the order. In JSON it is "unfinished_total_ns" and "unfinished_self_ns", and "ended_max_ns" is the longest other
call. Percentiles are of calls that were seen whole; if there are none, they are null.

After record --every, calls are all calls that were made. The times are those of the recorded calls, whose number is
behind the name (in JSON "recorded").

For a dump the report first says what it was made for: which call of which thread, how long it took, and when; and
whether calls are missing.

` + reelNaming + `
Behind the name is where the function begins in its source, as far as that is known on this machine. In JSON that is
"file" (with its path) and "line"; "name_from" says who knew the name if not the recorder: symbol table, DWARF or
debuginfod.

Where it is known when threads ran and waited, self is split: cpu is the time on a processor, ready the time in which
the thread could have run and didn't, blocked the time in which it waited for something (in JSON "self_cpu_ns" and so
on, and "total_cpu_ns" of total). What isn't known is in none of them.

If markers were recorded, tables follow of spans (how many, the time in them, percentiles), flows, counters (min, mean
of the values told, max, last) and instants. --span GLOB with --by ARG sums up spans by the value of a recorded
argument. In JSON these are "spans", "flows", "counters" and "instants", and "pauses" are the times in which nothing
was recorded because somebody had asked for that.

If functions were off for what their calls cost (a budget), the first line says what recording did cost, how much is
recorded, and how many functions were off. Behind a function's name is for how long it was off (in JSON "off_ns",
"off_share" and "estimated_calls"). --off lists which functions were off from when to when, also those without any
recorded call (in JSON "off").

With --locks it sums up what threads waited for in memory: mutexes and the like by address, how often, how long, and
which function of the thread that let them go on held them ("in" is where that spent nearly all of the time). Condition
variables come last, with the functions that signalled.

A damaged reel is read up to the damage and beyond it. The report says what was lost.`,
		Example: `  callreel report slow.reel --sort max --limit 20
  callreel report slow.reel -f '*Command' --json
  callreel report slow.reel -f handle_request --by path
  callreel report slow.reel --sort blocked
  callreel report slow.reel --locks
  callreel report slow.reel --span query --by arg1`,
		Args: oneFile,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	fl := c.Flags()
	fl.StringVar(&f.sort, "sort", "total", "sort by this `KEY`: calls, total, self, max, cpu, ready or blocked")
	fl.IntVar(&f.limit, "limit", 0, "only the first `N` functions and the N busiest threads (default all functions, 20 threads)")
	fl.StringArrayVarP(&f.functions, "function", "f", nil, "only functions that match this `GLOB` (repeatable)")
	fl.StringVar(&f.by, "by", "", "with -f: sum up calls by this recorded `ARG`, or by the result: return; with --span: spans")
	fl.StringArrayVar(&f.spans, "span", nil, "with --by: the spans that match this `GLOB` (repeatable)")
	fl.BoolVar(&f.locks, "locks", false, "sum up what threads waited for by lock, and which functions held it")
	fl.BoolVar(&f.off, "off", false, "list when functions were off for what their calls cost")
	fl.BoolVar(&f.json, "json", false, "write JSON")
	addDebugDirs(c.Flags(), &f.debugDirs)
	return c
}

func (f *reportFlags) run(c *cobra.Command, path string) error {
	w := c.OutOrStdout()
	key, ok := sortKeys[f.sort]
	if !ok {
		return usageError("callreel report: --sort %s: use calls, total, self, max, cpu, ready or blocked", f.sort)
	}
	if f.limit < 0 {
		return usageError("callreel report: --limit %d: use 0 for all, or a number above it", f.limit)
	}
	file, err := reel.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := f.sortable(path, file); err != nil {
		return err
	}
	ctx, stop := untilSignal(c.Context())
	defer stop()
	status := newStatus(c.ErrOrStderr())
	names, err := newReelNames(ctx, c, status, f.debugDirs)
	if err != nil {
		return err
	}
	defer names.Close() // only read from
	file.NameBy(names)
	if f.locks {
		return f.lockReport(w, file)
	}
	if len(f.spans) > 0 {
		if f.by == "" || len(f.functions) > 0 {
			return usageError("callreel report: --span goes with --by, and without -f")
		}
		return f.spanGroups(w, path, file)
	}
	if f.by != "" {
		return f.groups(w, path, file, key)
	}
	options := reel.SummaryOptions{Name: demangle.Name, Order: key, Limit: f.limit}
	wanted := newGlobs(f.functions)
	if len(f.functions) > 0 {
		options.Match = func(name string) bool { return wanted.match(name) || wanted.match(demangle.Short(name)) }
	}
	sum := reel.Summarize(file, options)
	if toldWhereToLook(f.debugDirs) {
		tellNotFound(status, names)
	}
	if err := wanted.unmatched("-f"); err != nil {
		return fmt.Errorf("callreel report: %s: %w", path, err)
	}
	r := report{Summary: sum, threads: cmp.Or(f.limit, shownThreads), closed: file.Closed()}
	if clock := file.Header().Clock; clock.Mode != reel.ClockNone {
		r.ticks = clock.TicksPerSecond
	}
	r.dump, _ = viewer.DumpOf(file)
	r.offs = offsOf(file, f.off, f.limit, options.Match)
	r.marks, r.names = marksOf(file, f.limit), file.GoroutineNames()
	r.scheduling, r.scheduled = file.Scheduling()
	if g := file.GoroutineStates(); g != nil && file.Header().Goroutines {
		r.goroutinesKnown, r.goroutinesUnknown = g.Known(), !g.Known()
	}
	if f.json {
		return r.json(w)
	}
	return r.text(w)
}

var sortKeys = map[string]func(*reel.FunctionSummary) uint64{
	"calls": madeOf,
	"total": (*reel.FunctionSummary).EndedTotal,
	"self":  (*reel.FunctionSummary).EndedSelf,
	"max":   func(f *reel.FunctionSummary) uint64 { return f.EndedMax },
	// Of self.
	"cpu":     func(f *reel.FunctionSummary) uint64 { return f.EndedSelfStates().Running },
	"ready":   func(f *reel.FunctionSummary) uint64 { return f.EndedSelfStates().Ready },
	"blocked": func(f *reel.FunctionSummary) uint64 { return f.EndedSelfStates().Blocked },
}

// madeOf is how many calls of a function there were, as far as the reel tells.
func madeOf(f *reel.FunctionSummary) uint64 { return max(f.Made, f.Calls) }

// report is what is written.
type report struct {
	*reel.Summary
	threads int          // how many of them the text has
	closed  bool         // the reel is whole: its recorder has ended it
	ticks   uint64       // of the reel's clock in a second; 0 if it has none
	dump    *viewer.Dump // nil if the reel is none

	marks markReport
	offs  offReport
	names map[uint64]string // that goroutines have given themselves

	scheduling reel.Scheduling // if the reel says anything of that
	scheduled  bool
	// Of a Go program with states: whether anything is known of goroutines.
	goroutinesKnown, goroutinesUnknown bool
}

// threadJSON is a thread as --json has it; the keys are promised.
type threadJSON struct {
	TID     int    `json:"tid"`
	PID     int    `json:"pid,omitempty"`
	Name    string `json:"name"`
	Calls   uint64 `json:"calls"`
	Dropped uint64 `json:"dropped_events,omitempty"`
	*ThreadStatesJSON
}

// goroutineJSON is a goroutine of a Go program; the keys are promised. ID 0 is what ran on the own stack of the thread.
type goroutineJSON struct {
	ID        uint64 `json:"id"`
	TID       int    `json:"tid"`
	Calls     uint64 `json:"calls"`
	Runs      uint64 `json:"runs"`
	Unmatched uint64 `json:"unmatched_exits,omitempty"`
	Name      string `json:"name,omitempty"`
	*GoroutineStatesJSON
}

// json streams the report; "damaged" is there only for a damaged reel.
func (r *report) json(w io.Writer) error {
	b := bufio.NewWriter(w)
	b.WriteString("{")
	err := jsonList(b, "functions", len(r.Functions), func(i int) any {
		fn := viewer.FunctionOf(&r.Functions[i])
		if r.HasStates {
			fn.FunctionStates = viewer.StatesOf(&r.Functions[i])
		}
		fn.FunctionOff = r.offs.of(r.Functions[i].ID)
		return fn
	})
	if err != nil {
		return err
	}
	b.WriteString(",\n")
	if err := jsonList(b, "threads", len(r.Threads), func(i int) any {
		t := &r.Threads[i]
		return threadJSON{t.TID, t.Process, t.Name, t.Calls, t.Dropped, threadStates(t, r.scheduling.Faults)}
	}); err != nil {
		return err
	}
	if len(r.Goroutines) > 0 {
		b.WriteString(",\n")
		if err := jsonList(b, "goroutines", len(r.Goroutines), func(i int) any {
			g := &r.Goroutines[i]
			return goroutineJSON{g.ID, r.tid(g.Thread), g.Calls, g.Runs, g.UnmatchedExits, r.names[g.ID], r.goroutineStates(g)}
		}); err != nil {
			return err
		}
	}
	fmt.Fprintf(b, ",\n\"calls\":%d,\"events\":%d,\"dropped\":%d,\"lost_exits\":%d,\"unmatched_exits\":%d,\"duration_ns\":%d,\"ticks_per_second\":%d,\"closed\":%v",
		r.Calls, r.Events, r.DroppedEntries, r.DroppedExits, r.UnmatchedExits, r.Duration, r.ticks, r.closed)
	if r.Every > 0 {
		fmt.Fprintf(b, ",\"every\":%d,\"made\":%d", r.Every, r.Made)
	}
	if err := r.offs.json(b); err != nil {
		return err
	}
	if err := r.marks.json(b); err != nil {
		return err
	}
	if err := r.scheduledJSON(b); err != nil {
		return err
	}
	if r.dump != nil {
		if err := dumpJSON(b, r.dump); err != nil {
			return err
		}
	}
	if len(r.Damage) > 0 {
		b.WriteString(",\n")
		if err := jsonList(b, "damaged", len(r.Damage), func(i int) any { return r.Damage[i].String() }); err != nil {
			return err
		}
	}
	b.WriteString("}\n")
	return b.Flush()
}

// fineClock is from how many ticks a second on nothing is said of the clock: a tick is less than a call takes.
const fineClock = 500_000_000

// text writes the report for people.
func (r *report) text(w io.Writer) error {
	b := bufio.NewWriter(w)
	if r.dump != nil {
		dumpText(b, r.dump)
	}
	r.offs.head(b)
	r.columns(b)
	if r.Unlisted > 0 {
		fmt.Fprintf(b, "and %s\n", things(uint64(r.Unlisted), "other function"))
	}
	duration := r.Duration
	if r.dump != nil { // its first entry may be long before
		duration = r.dump.WindowNS()
	}
	fmt.Fprintf(b, "\n%s in %s; %s dropped", things(r.Calls, "call"), span(duration), count(r.DroppedEntries))
	if r.UnmatchedExits > 0 {
		why := "or were dropped"
		if r.DroppedEntries == 0 {
			why = "or came into their function behind its entry"
		}
		fmt.Fprintf(b, "; %s of calls that began before the recording, %s", things(r.UnmatchedExits, "return"), why)
	}
	if r.Every > 0 {
		fmt.Fprintf(b, "; one in %s of each function, of %s made: times are of those", count(uint64(r.Every)), things(r.Made, "call"))
	}
	b.WriteString("\n")
	if r.ticks > 0 && r.ticks < fineClock {
		fmt.Fprintf(b, "The clock has a tick every %.3g ns: what took less may read as 0.\n", 1e9/float64(r.ticks))
	}
	if r.Calls == 0 && r.marks.MarkSummary == nil {
		b.WriteString("No call was recorded: no thread entered a traced function. A call that began before the recording isn't seen.\n")
	}
	r.offs.table(b)
	r.marks.text(b)
	r.schedulingText(b)
	r.threadRows(b)
	r.goroutines(b)
	if !r.closed {
		b.WriteString("\nThe reel was not ended by its recorder: that is still at work, or was killed.\n")
	}
	for _, d := range r.Damage {
		fmt.Fprintf(b, "damaged: %s\n", printable(d.String()))
	}
	return b.Flush()
}

// columns writes the table of functions.
func (r *report) columns(b *bufio.Writer) {
	if r.HasStates {
		r.columnsWithStates(b)
		return
	}
	fmt.Fprintf(b, "%12s %10s %10s %10s %10s %10s  %s\n", "calls", "total", "self", "p50", "p99", "max", "function")
	for i := range r.Functions {
		f := &r.Functions[i]
		p50, p99 := span(f.P50), span(f.P99)
		if f.Complete == 0 { // no call was seen whole
			p50, p99 = "-", "-"
		}
		fmt.Fprintf(b, "%12s %10s %10s %10s %10s %10s  ", count(madeOf(f)), span(f.Total), span(f.Self), p50, p99, span(f.Max))
		r.nameText(b, f)
	}
}

// nameText ends a function's line with its name, and what is behind that.
func (r *report) nameText(b *bufio.Writer, f *reel.FunctionSummary) {
	fmt.Fprintf(b, "%s!%s%s", printable(f.Module), printable(f.Name), placeText(f.File, f.Line))
	if f.Made > 0 {
		fmt.Fprintf(b, "  (%s recorded)", count(f.Calls))
	}
	fmt.Fprintf(b, "%s%s\n", notReturned(f), r.offs.text(f.ID))
}

// shownThreads is how many threads are listed if --limit doesn't say: a program may have had thousands.
const shownThreads = 20

// threadRows writes the busiest threads, and what the others come to.
func (r *report) threadRows(b *bufio.Writer) {
	if len(r.Threads) == 0 {
		return
	}
	b.WriteString("\nthreads\n")
	busiest := slices.Clone(r.Threads)
	slices.SortStableFunc(busiest, func(a, b reel.ThreadSummary) int { return cmp.Compare(b.Calls, a.Calls) })
	n := min(r.threads, len(busiest))
	for i := range busiest[:n] {
		t := &busiest[i]
		of := ""
		if t.Process != r.Threads[0].Process { // of another process than the first, which --follow has taken in
			of = fmt.Sprintf(" of process %d", t.Process)
		}
		fmt.Fprintf(b, "%12s calls  %s%7d %s%s%s\n", count(t.Calls), r.threadColumns(t), t.TID, printable(t.Name), of, faultsText(t))
	}
	if others := busiest[n:]; len(others) > 0 {
		calls := uint64(0)
		for i := range others {
			calls += others[i].Calls
		}
		fmt.Fprintf(b, "%12s calls  of %s\n", count(calls), things(uint64(len(others)), "other thread"))
	}
}

// placeText says where a function is in its source, if that is known.
func placeText(file string, line uint32) string {
	if file == "" {
		return ""
	}
	return "  (" + printable(path.Base(file)) + ":" + strconv.FormatUint(uint64(line), 10) + ")"
}

// notReturned says how many calls of a function were not seen to return, and why.
func notReturned(f *reel.FunctionSummary) string {
	text := ""
	switch {
	case f.Implicit > 0 && f.Unfinished > 0:
		text = fmt.Sprintf("  (%s ended without returning, %s unfinished)", count(f.Implicit), count(f.Unfinished))
	case f.Implicit > 0:
		text = fmt.Sprintf("  (%s ended without returning)", count(f.Implicit))
	case f.Unfinished > 0:
		text = fmt.Sprintf("  (%s unfinished)", count(f.Unfinished))
	}
	if f.UnfinishedTotal > 0 {
		text += ", open for " + span(f.UnfinishedTotal)
	}
	return text
}

// tid is the ID of the thread with that key.
func (r *report) tid(key uint32) int {
	for i := range r.Threads {
		if r.Threads[i].Key == key {
			return r.Threads[i].TID
		}
	}
	return 0
}

// shownGoroutines is how many goroutines are listed: a program may have had millions.
const shownGoroutines = 20

// goroutines writes the busiest goroutines.
func (r *report) goroutines(b *bufio.Writer) {
	if len(r.Goroutines) == 0 {
		return
	}
	b.WriteString("\ngoroutines\n")
	for i := range r.Goroutines[:min(len(r.Goroutines), shownGoroutines)] {
		g := &r.Goroutines[i]
		name := fmt.Sprint(g.ID)
		if g.ID == 0 {
			name = fmt.Sprintf("the own stack of thread %d", r.tid(g.Thread))
		}
		if given := r.names[g.ID]; given != "" {
			name += " " + printable(given)
		}
		fmt.Fprintf(b, "%12s calls  %7s runs  %s%s\n", count(g.Calls), count(g.Runs), r.goroutineColumns(g), name)
	}
	if n := len(r.Goroutines) - shownGoroutines; n > 0 {
		fmt.Fprintf(b, "and %s\n", things(uint64(n), "other goroutine"))
	}
}
