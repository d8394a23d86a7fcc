package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callreel/callreel/demo"
	"github.com/callreel/callreel/internal/outfile"
	"github.com/callreel/callreel/process"
	"github.com/callreel/callreel/reel"
)

func newDemo() *cobra.Command {
	var dir string
	var force bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "Record a small server with one planted slow request, and show it",
		Long: `Demo compiles a small C server with the machine's compiler, records it under load for some seconds, and prints the
report that shows which function makes one request slow. It listens on the loopback interface only, and ends
everything that it has started. The folder with the recording stays.`,
		Example: `  callreel demo`,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			given := dir != ""
			dir, err := demoFolder(dir, force)
			if err != nil {
				return err
			}
			// The children end with the thread that has started them, so this goroutine keeps its own.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ctx, stop := untilSignal(c.Context())
			defer stop()
			s := &demoShow{dir: dir, reel: filepath.Join(dir, demoReel), in: c.InOrStdin(), out: c.OutOrStdout(), err: c.ErrOrStderr()}
			err = s.run(ctx)
			if err != nil && !given {
				err = errors.Join(err, os.RemoveAll(dir))
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		},
	}
	c.Flags().StringVarP(&dir, "output", "o", "", "make everything in the folder `DIR` (default a new temporary one)")
	c.Flags().BoolVar(&force, "force", false, "replace files that exist")
	return c
}

const demoReel = "demo.reel"

// demoFolder makes the folder. What is in it is replaced only with force.
func demoFolder(dir string, force bool) (string, error) {
	if err := process.CodeSupported(); err != nil {
		return "", fmt.Errorf("callreel demo: %w", err)
	}
	if dir == "" {
		dir, err := os.MkdirTemp("", "callreel-demo-")
		if err != nil {
			return "", fmt.Errorf("callreel demo: %w", err)
		}
		return dir, nil
	}
	folder, err := outfile.MakeFolders(dir, 0)
	if err == nil { // what is compiled there is run
		err = errors.Join(folder.Private(), folder.Close())
	}
	if err != nil {
		return "", fmt.Errorf("callreel demo: %w", err)
	}
	for _, name := range append(demo.Files(), demoReel) {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil && !force {
			return "", usageError("callreel demo: %s: %w; --force replaces it", path, fs.ErrExist)
		}
	}
	return dir, nil
}

// demoShow is the demo's story.
type demoShow struct {
	dir, reel string
	in        io.Reader
	out, err  io.Writer
}

const (
	demoLoad  = 60 // seconds at most: it is ended behind the recording
	demoDelay = 500 * time.Millisecond
)

func (s *demoShow) run(ctx context.Context) error {
	made, err := demo.Build(ctx, s.dir)
	if errors.Is(err, demo.ErrNoCompiler) {
		return &exitError{exitNotPermitted, err}
	}
	if err != nil {
		return err
	}
	s.say("%s", made)
	running, err := demo.Start(ctx, s.dir, demoLoad)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w; programs in %s can't be started: give another folder with -o", err, s.dir)
	}
	if err != nil {
		return err
	}
	defer running.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(demoDelay):
	}
	if err := s.callreel(ctx, "record", "-p", strconv.Itoa(running.ServerPID()), "-m", demo.Server, "-d", "3s", "--force", "-o", s.reel); err != nil {
		return err
	}
	seen, err := running.EndLoad()
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "\nThe load, seen from outside: %s\n", seen)
	if err := s.callreel(ctx, "report", s.reel, "--sort", "max", "--limit", "12"); err != nil {
		return err
	}
	return s.explain()
}

func (s *demoShow) say(format string, args ...any) {
	fmt.Fprintf(s.out, "\n$ "+format+"\n", args...)
}

// callreel does what the command line that it shows does.
func (s *demoShow) callreel(ctx context.Context, args ...string) error {
	s.say("callreel %s", strings.Join(args, " "))
	code := run(args, s.in, s.out, s.err)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if code != exitDone {
		return &exitError{code: code}
	}
	return nil
}

// explain says what the report shows.
func (s *demoShow) explain() error {
	const culprit = "hash_collide"
	f, err := reel.Open(s.reel)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := reel.Summarize(f, reel.SummaryOptions{Match: func(name string) bool { return name == culprit }})
	if len(sum.Functions) == 0 {
		return errors.New("callreel demo: the slow request was not recorded")
	}
	_, err = fmt.Fprintf(s.out, `
The slow request: handle_request > route > render_page > cache_rebuild > %[1]s,
%[2]d ms in one call of %[1]s. It is GET /page/report-2019: every entry of its table
falls into one bucket (%[1]s in %[3]s). The timeline, in your browser and for https://ui.perfetto.dev:
  callreel view %[4]s
  callreel export %[4]s --format chrome -o demo.json
`, culprit, sum.Functions[0].Max/1e6, filepath.Join(s.dir, demo.Server+".c"), s.reel)
	return err
}
