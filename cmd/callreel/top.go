package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/cmd/callreel/internal/screen"
	"github.com/callreel/callreel/live"
	"github.com/callreel/callreel/recorder"
)

// topFlags are the flags of top.
type topFlags struct {
	pid      processID
	choice   choiceFlags
	interval time.Duration
	duration time.Duration
	ring     size
	sort     string
	limit    int
	once     bool
	json     bool
	markers  markerFlags
	imports  importFlags
	budget   budgetFlags
	off      bool
}

func newTop() *cobra.Command {
	f := &topFlags{}
	c := &cobra.Command{
		Use:   "top -p PID",
		Short: "Show live which functions are called, how often and for how long",
		Long: `Top attaches to the process as record does, and counts every call of the chosen functions. It writes no file. On a
terminal it shows a page, twice a second, of the functions that were called in the last --interval: calls a second, the
time in the function without the calls that it made (self), the 99th percentile and the longest of its calls, and how
many are open. An open call counts with the time that has passed so far. The line above the table says how many calls
were dropped because the rings were full.

Keys: c s p m sort by calls, self, p99 and max; / filters by the text that follows; space freezes the page and lets it
go on; t shows the threads and the call that each of them is in; a shows all calls since the beginning; with --budget
o shows the functions that are off; q ends.

If stdout is no terminal, a table is written each --interval, with --json an object. --once writes one and ends.
Ctrl-C, SIGTERM, the end of -d and the end of the process end it. Then it detaches, and checks that the text is as it
was.

With --budget some functions are off for what their calls cost: those aren't counted, and their time counts as their
callers'. How many there are, and what is spent of the budget, is said above the page, and below each table. Functions
that are off are marked, and --off lists them all, with how many calls a second they had when they were last on.

` + liveNaming,
		Example: `  callreel top -p 1234
  callreel top -p 1234 -m redis-server -x 'dict*' --sort self
  callreel top -p 1234 --once --json --interval 5s`,
		Args: f.arguments,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	fl := c.Flags()
	addPID(fl, &f.pid, "the process to attach to, by its `PID`")
	f.choice.add(fl)
	fl.DurationVar(&f.interval, "interval", time.Second, "the time that the numbers are for, at least 100ms")
	fl.DurationVarP(&f.duration, "duration", "d", 0, "end after this time, such as 5s or 1m30s")
	fl.Var(&f.ring, "ring", "memory for the events of all threads that wait to be counted (default 64M)")
	fl.StringVar(&f.sort, "sort", "calls", "sort by this `KEY`: calls, self, p99 or max")
	fl.IntVar(&f.limit, "limit", 0, "only the first `N` functions, except on the page (default 20 in repeated tables, else all)")
	fl.BoolVar(&f.once, "once", false, "measure one --interval, write it and end")
	fl.BoolVar(&f.json, "json", false, "write JSON, one object for each --interval")
	fl.StringArrayVar(&f.markers.markers, "markers", nil, "count the program's own markers, too: the `GLOB` 'postgresql:*' (repeatable)")
	f.budget.add(fl)
	fl.BoolVar(&f.off, "off", false, "with --budget: list the functions that are off, too")
	fl.StringArrayVar(&f.imports.imports, "imports", nil, "count calls by callers' GOT slots: the `SPEC` 'LIB:FUNC', two globs (repeatable)")
	return c
}

// minInterval is the shortest time that --interval takes: the rings are read every 10 ms.
const minInterval = 100 * time.Millisecond

func (f *topFlags) arguments(c *cobra.Command, args []string) error {
	switch {
	case f.pid == 0:
		return usageError("callreel top: give -p PID; see callreel top --help")
	case topOrders[f.sort] == nil:
		return usageError("callreel top: --sort %s: use calls, self, p99 or max", f.sort)
	case f.limit < 0:
		return usageError("callreel top: --limit %d: use 0 for all, or a number above it", f.limit)
	case f.interval < minInterval:
		return usageError("callreel top: --interval %v: use %v or more", f.interval, minInterval)
	case f.budget.wrong() != "":
		return usageError("callreel top: %s", f.budget.wrong())
	case f.off && f.budget.share == 0:
		return usageError("callreel top: --off goes with --budget")
	case f.duration < 0:
		return usageError("callreel top: -d %v: it can't end before it begins", f.duration)
	}
	return noArguments(c, args)
}

func (f *topFlags) run(c *cobra.Command) error {
	ctx, stop := untilSignal(c.Context())
	defer stop()
	// A reader of our output that goes away must not end us before we have detached.
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	defer signal.Stop(gone)
	status := newStatus(c.ErrOrStderr())
	out, _ := c.OutOrStdout().(*os.File)
	in, _ := c.InOrStdin().(*os.File)
	choice, err := f.choice.choice(c.CommandPath(), f.pid, status)
	if err != nil {
		return err
	}
	if len(f.imports.imports) > 0 {
		chosen := slices.ContainsFunc([]string{"module", "function", "exclude", "min-size"}, c.Flags().Changed)
		choice.NoFunctions = !chosen
	}
	if !f.once && !f.json && in != nil && out != nil && screen.Usable(out) {
		return f.page(ctx, choice, c, status, in, out)
	}
	return f.tables(ctx, choice, c, status)
}

// topRun is a recording whose events are but counted.
type topRun struct {
	meter   *live.Meter
	started chan struct{} // closed when recording is on
	ended   chan struct{} // closed when recording has ended
	cancel  context.CancelFunc

	// When it has ended.
	result *recorder.Result
	err    error
}

// start begins to record, with sums of stretches of that length.
func (f *topFlags) start(ctx context.Context, choice recorder.Choice, stretch time.Duration, notice func(string, ...any), failing func()) *topRun {
	t := &topRun{meter: live.NewMeter(stretch), started: make(chan struct{}), ended: make(chan struct{})}
	ctx, t.cancel = context.WithCancel(ctx)
	collect := collectLater()
	f.budget.allowNaps(1)
	go func() {
		defer close(t.ended)
		defer func() {
			if failed := recover(); failed != nil {
				failing()
				panic(failed)
			}
		}()
		t.result, t.err = recorder.Record(ctx, recorder.Options{
			PID: int(f.pid), Choice: choice, Markers: f.counted(), Imports: f.imports.imports, Budget: f.budget.budget(), To: t.meter, Duration: f.duration, RingSize: uint64(f.ring), Tool: "callreel " + versionText(),
			Started: func() { collect(); close(t.started) }, Notice: notice,
		})
	}()
	return t
}

// end ends the recording and waits for its end.
func (t *topRun) end(ctx context.Context) error {
	t.cancel()
	<-t.ended
	switch {
	case t.result == nil:
		return endedEarly(ctx, t.err)
	case t.err == nil && !t.result.TextVerified:
		return errTextChanged
	}
	return t.err
}

var errTextChanged = errors.New("callreel: the text is not what the files say; somebody else has changed it while recording")

// counted are the markers that are counted; their arguments are not wanted.
func (f *topFlags) counted() (list []string) {
	for _, m := range f.markers.markers {
		if !strings.Contains(m, "(") {
			m += "()"
		}
		list = append(list, m)
	}
	return list
}
