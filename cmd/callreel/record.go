package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/reel"
)

// recordFlags are the flags of record.
type recordFlags struct {
	pid      int
	choice   choiceFlags
	duration time.Duration
	output   string
	force    bool
	ring     size
	clock    string
	lossless bool
	json     bool
	summary  string
}

func newRecord() *cobra.Command {
	f := &recordFlags{}
	c := &cobra.Command{
		Use:   "record -p PID | -- CMD [ARG…]",
		Short: "Record every call of a process",
		Long: `Record attaches to the process (or starts CMD) and writes the entry and exit of every chosen function to a reel,
until Ctrl-C, the end of -d, or the end of the process. Then it detaches and verifies that the text is as it was.

A call that finds no room in the ring is dropped and counted; with --lossless the process waits instead.`,
		Example: `  callreel record -p 1234 -d 5s -o slow.reel
  callreel record -p 1234 -m redis-server -f '*Command'
  callreel record -o ls.reel -- ls -l`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	fl := c.Flags()
	fl.IntVarP(&f.pid, "pid", "p", 0, "the process to attach to")
	f.choice.add(fl)
	fl.DurationVarP(&f.duration, "duration", "d", 0, "end after this time, such as 5s or 1m30s")
	fl.StringVarP(&f.output, "output", "o", "", "the reel to write (default NAME-PID.reel, or CMD.reel)")
	fl.BoolVar(&f.force, "force", false, "replace a reel that is there")
	fl.Var(&f.ring, "ring", "memory for events that wait to be written, for all threads (default 64M)")
	fl.StringVar(&f.clock, "clock", "full", "which events carry the time: full, exit or none")
	fl.BoolVar(&f.lossless, "lossless", false, "let the process wait for room instead of dropping calls")
	fl.BoolVar(&f.json, "json", false, "write the summary as one JSON object to stdout")
	fl.StringVar(&f.summary, "summary", "", "write the summary as JSON to this file (for CMD, whose stdout is its own)")
	return c
}

func (f *recordFlags) run(c *cobra.Command, args []string) error {
	if (f.pid > 0) == (len(args) > 0) {
		return usageError("callreel record: give either -p PID or -- CMD")
	}
	clock, err := reel.ParseClockMode(f.clock)
	if err != nil {
		return usageError("callreel record: --clock %s: use full, exit or none", f.clock)
	}
	if f.output == "" {
		f.output = recorder.DefaultOutput(f.pid, args)
	}
	status := newStatus(os.Stderr)
	result, err := recorder.Record(c.Context(), recorder.Options{
		PID: f.pid, Command: args, Choice: f.choice.choice(),
		Output: f.output, Force: f.force, Duration: f.duration, RingSize: uint64(f.ring), Clock: clock, Lossless: f.lossless,
		Tool:   "callreel " + version,
		Notice: status.notice, Progress: status.progress,
	})
	status.clear()
	if result == nil {
		return err
	}
	if werr := f.write(c.OutOrStdout(), result, len(args) > 0); err == nil {
		err = werr
	}
	if err == nil && !result.TextVerified {
		err = errors.New("callreel: the text is not what the files say; somebody else has changed it while recording")
	}
	if err == nil && result.ExitCode != 0 {
		return &exitError{code: result.ExitCode}
	}
	return err
}

// summary is what --json and --summary write; the keys are promised.
type summary struct {
	Functions struct {
		Seen     int            `json:"seen"`
		Traced   int            `json:"traced"`
		Compiled int            `json:"compiled"`
		Refused  map[string]int `json:"refused"`
	} `json:"functions"`
	Calls        uint64  `json:"calls"`
	Events       uint64  `json:"events"`
	Dropped      uint64  `json:"dropped"`
	LostExits    uint64  `json:"lost_exits,omitempty"`
	Torn         uint64  `json:"torn_events,omitempty"`
	Bytes        int64   `json:"bytes"`
	Threads      int     `json:"threads"`
	AttachStopMS float64 `json:"attach_stop_ms"`
	DetachStopMS float64 `json:"detach_stop_ms"`
	TextVerified bool    `json:"text_verified"`
	Ended        bool    `json:"ended"`
	Left         string  `json:"left,omitempty"`
	File         string  `json:"file"`
	ExitCode     *int    `json:"exit_code,omitempty"`
}

func (f *recordFlags) write(stdout io.Writer, r *recorder.Result, command bool) error {
	var s summary
	s.Functions.Seen, s.Functions.Traced, s.Functions.Compiled = r.Seen, r.Traced, r.Traced
	s.Functions.Refused = r.Refused
	s.Calls, s.Events, s.Dropped, s.LostExits, s.Torn = r.Calls, r.Events, r.Dropped, r.LostExits, r.Torn
	s.Bytes, s.Threads = r.Bytes, r.Threads
	s.AttachStopMS, s.DetachStopMS = milliseconds(r.AttachStop), milliseconds(r.DetachStop)
	s.TextVerified, s.Ended, s.Left, s.File = r.TextVerified, r.Ended, r.Left, f.output
	if command {
		s.ExitCode = &r.ExitCode
	}
	if f.summary != "" {
		b, err := json.MarshalIndent(&s, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.summary, append(b, '\n'), 0o644); err != nil {
			return fmt.Errorf("callreel: %w", err)
		}
	}
	if f.json {
		return json.NewEncoder(stdout).Encode(&s)
	}
	if f.summary == "" {
		f.say(os.Stderr, r)
	}
	return nil
}

// say writes the summary for people; to stderr, since stdout may be the command's.
func (f *recordFlags) say(w io.Writer, r *recorder.Result) {
	fmt.Fprintf(w, "%s: %s calls in %d threads, %s", f.output, count(r.Calls), r.Threads, bytesText(r.Bytes))
	if r.Events > 0 {
		fmt.Fprintf(w, " (%.1f bytes an event)", float64(r.Bytes)/float64(r.Events))
	}
	fmt.Fprintf(w, ", %s dropped\n", count(r.Dropped))
	fmt.Fprintf(w, "%d of %d functions traced; stopped %.1f ms to attach", r.Traced, r.Seen, milliseconds(r.AttachStop))
	if r.Ended {
		fmt.Fprintf(w, "; the process has ended\n")
	} else {
		fmt.Fprintf(w, ", %.1f ms to detach; text verified: %v\n", milliseconds(r.DetachStop), r.TextVerified)
	}
	if r.Left != "" {
		fmt.Fprintf(w, "stubs stay mapped in the process, unused: %s; callreel detach removes them later\n", r.Left)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// status is the line of progress on a terminal; elsewhere only notices are written.
type status struct {
	w    *os.File
	tty  bool
	open bool
}

func newStatus(w *os.File) *status {
	return &status{w: w, tty: term.IsTerminal(int(w.Fd()))}
}

func (s *status) notice(format string, args ...any) {
	s.clear()
	fmt.Fprintf(s.w, "callreel: "+format+"\n", args...)
}

func (s *status) progress(p recorder.Progress) {
	if !s.tty {
		return
	}
	s.open = true
	fmt.Fprintf(s.w, "\r\x1b[K%5.1fs  %s calls  %s dropped  %d threads  %s   Ctrl-C ends", p.Elapsed.Seconds(), count(p.Calls), count(p.Dropped), p.Threads, bytesText(p.Bytes))
}

func (s *status) clear() {
	if s.open {
		fmt.Fprint(s.w, "\r\x1b[K")
		s.open = false
	}
}
