package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/crash"
	"github.com/callreel/callreel/object"
	"github.com/callreel/callreel/symbols/symbolize"
)

// crashFlags are the flags of crash.
type crashFlags struct {
	json      bool
	store     string
	debugDirs []string
	memory    memoryLimit
}

func newCrash() *cobra.Command {
	f := &crashFlags{}
	c := &cobra.Command{
		Use:   "crash FILE",
		Short: "Read a crash report: why, where, and every thread's stack with names",
		Long: `Crash knows by itself what FILE is ("-" is standard input):

  minidump          of Breakpad and Crashpad, for x86-64, i386 and arm64
  core              of Linux (ELF) and macOS (Mach-O)
  .ips and .crash   Apple's reports, in JSON and in text
  KSCrash's JSON    standard, user and minimal reports, and those of a crash while another one was reported
  tombstone         Android's, in text and in protobuf
  log               Go's panics, and what systemd-coredump prints

The thread that crashed comes first, with the reason, its registers and the code around its PC. Stacks of minidumps
and cores are walked here: by call frame information where the image is at hand, else by frame pointers, else by a scan
of the stack for what looks like a return address. Marks say so: [frame pointer], [scan]. A call found by a scan may be
a stale one; [code] and [leaf] are return addresses whose place is known. A stack that isn't whole says why.

Images are found by their IDs: at their paths, below --debug-dir as DIR/NAME or DIR/.build-id/ab/cdef…, and on the
servers of DEBUGINFOD_URLS if that is set. Names come from the same places and from the store. What is missing is
listed with its ID.`,
		Example: `  callreel crash upload.dmp
  callreel crash upload.dmp --debug-dir ./symbols --json
  adb logcat -d | callreel crash -`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError("callreel crash: give one FILE; see callreel crash --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args[0]) },
	}
	fl := c.Flags()
	fl.BoolVar(&f.json, "json", false, "write JSON")
	fl.StringVar(&f.store, "store", "", "look for maps in the store `DIR` (default your user's)")
	addDebugDirs(fl, &f.debugDirs)
	f.memory.add(fl)
	return c
}

// maxCrashInput bounds a report that is read from standard input, in bytes.
const maxCrashInput = 256 << 20

// openCrash opens a report; "-" is standard input.
func openCrash(in io.Reader, path string) (*crash.Report, error) {
	if path != "-" {
		return crash.Open(path)
	}
	data, err := io.ReadAll(io.LimitReader(in, maxCrashInput+1))
	if err != nil {
		return nil, fmt.Errorf("standard input: %w", err)
	}
	if len(data) > maxCrashInput {
		return nil, fmt.Errorf("standard input: more than %d MB; give a file", maxCrashInput>>20)
	}
	return crash.Read("standard input", bytes.NewReader(data), int64(len(data)))
}

func (f *crashFlags) run(c *cobra.Command, path string) (err error) {
	ctx, stop := untilSignal(c.Context())
	defer stop()
	// What names the addresses is what symbolize asks.
	asks := symbolizeFlags{store: f.store, debugDirs: f.debugDirs, memory: f.memory}
	source, err := asks.source("callreel crash", newStatus(c.ErrOrStderr()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	r, err := openCrash(c.InOrStdin(), path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	o := crash.Options{
		Symbols: symbolize.Source(source), DebugDirs: f.debugDirs, Memory: object.NewAllowance(f.memory.limit()),
	}
	if source.Finder.Fetcher != nil {
		o.Fetcher = &shownFetcher{source}
	}
	if err := r.Resolve(ctx, o); err != nil {
		return err
	}
	for _, p := range r.Problems {
		c.PrintErrln(message(p))
	}
	if f.json {
		return crashJSON(c.OutOrStdout(), r)
	}
	return crashText(c.OutOrStdout(), r)
}

// shownFetcher fetches images for stacks, and shows on a terminal how far it is.
type shownFetcher struct{ source *shownSource }

// Fetch implements symbols.Fetcher.
func (f *shownFetcher) Fetch(ctx context.Context, id, kind string) (string, error) {
	s := f.source
	s.bar, s.name = newProgress(s.status), id
	defer s.bar.clear()
	return s.Finder.Fetcher.Fetch(ctx, id, kind)
}
