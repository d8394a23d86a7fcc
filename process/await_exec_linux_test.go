package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"golang.org/x/sys/unix"
)

// An execer is a target that is about to replace its program.
type execer struct {
	*target
	process, thread int
	goFile          string
}

// startExecer starts testdata/execs.c, that waits for leave.
func startExecer(t testing.TB, mode string, command ...string) *execer {
	t.Helper()
	e := &execer{goFile: filepath.Join(t.TempDir(), "go")}
	e.target = startTarget(t, build(t, "execs.c", "gcc"), append([]string{mode, e.goFile}, command...)...)
	e.identify()
	return e
}

func (e *execer) identify() {
	e.t.Helper()
	ids, err := atois(strings.Fields(e.line()))
	if err != nil || len(ids) != 2 {
		e.t.Fatalf("IDs: %v, %v", ids, err)
	}
	e.process, e.thread = ids[0], ids[1]
}

// leave lets it go on. It may have gone on already.
func (e *execer) leave() { _ = os.WriteFile(e.goFile, nil, 0o600) }

var execOptions = StopOptions{Timeout: 20 * time.Second}

const longPatience = 20 * time.Second

func (e *execer) await(fn func(*Stopped) error) error {
	var p *Process
	err := AwaitExec(context.Background(), e.process, e.thread, longPatience, execOptions, e.leave, func(s *Stopped) error {
		p = s.Process()
		return fn(s)
	})
	if err == nil {
		p.Close()
	}
	e.leave()
	return err
}

func TestExecIsAwaitedToTheEntry(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	for _, c := range cLibraries {
		for _, mode := range []string{"plain", "thread", "vfork", "memory"} {
			t.Run(c.compiler+strings.Join(c.flags, "")+"-"+mode, func(t *testing.T) {
				t.Parallel()
				path := build(t, "arrives.c", c.compiler, c.flags...)
				e := startExecer(t, mode, path, "x", "y")
				calls := 0
				err := e.await(func(s *Stopped) error {
					calls++
					return checkLaunched(t, s, len(c.flags) > 0)
				})
				if err != nil || calls != 1 {
					t.Errorf("%d calls, %v", calls, err)
				}
				if text := e.finish(); text != "arrived x 3\nok\n" {
					t.Errorf("%q", text)
				}
			})
		}
	}
}

func TestExecThroughScriptsAndPath(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	e := startExecer(t, "plain", path, "word")
	if err := e.await(inject); err != nil {
		t.Error(err)
	}
	if text := e.finish(); text != "word\n" {
		t.Errorf("%q", text)
	}
	// The search tries every folder: one call is awaited each time.
	t.Setenv("PATH", "/no/such/folder:"+os.Getenv("PATH"))
	e = startExecer(t, "search", "echo", "word")
	if err := e.await(inject); !errors.Is(err, ErrNoExec) || !errors.Is(err, unix.ENOENT) {
		t.Error(err)
	}
	if text := e.finish(); text != "word\n" {
		t.Errorf("%q", text)
	}
}

func TestExecThatDoesNotComeLeavesTheThreadAlone(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	called := func(*Stopped) error {
		t.Error("called")
		return nil
	}
	e := startExecer(t, "plain", "/no/such/program")
	if err := e.await(called); !errors.Is(err, ErrNoExec) || !errors.Is(err, unix.ENOENT) {
		t.Error(err)
	}
	if text := e.finish(); text != "No such file or directory\n" {
		t.Errorf("%q", text)
	}
	e = startExecer(t, "never", "/bin/true")
	err := AwaitExec(context.Background(), e.process, e.thread, 30*time.Millisecond, execOptions, e.leave, called)
	if !errors.Is(err, ErrNoExec) {
		t.Error(err)
	}
	checkUntraced(t, e.process)
	busy := startExecer(t, "busy", "/bin/true") // one system call after the other
	err = AwaitExec(context.Background(), busy.process, busy.thread, 30*time.Millisecond, execOptions, busy.leave, called)
	if !errors.Is(err, ErrNoExec) {
		t.Error(err)
	}
	checkUntraced(t, busy.process)
	ctx, cancel := context.WithCancel(context.Background())
	err = AwaitExec(ctx, e.process, e.thread, longPatience, execOptions, cancel, called)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	checkUntraced(t, e.process)
	err = AwaitExec(context.Background(), e.process, e.thread, longPatience, execOptions, func() {
		if err := unix.Kill(e.process, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}, called)
	if !errors.Is(err, ErrNoProcess) {
		t.Error(err)
	}
	if err := AwaitExec(context.Background(), e.process, e.process+1, longPatience, execOptions, e.leave, called); !errors.Is(err, ErrNoProcess) {
		t.Error(err)
	}
}

func checkUntraced(t *testing.T, pid int) {
	t.Helper()
	s, err := readStatus(pid, pid)
	if err != nil || s.TracerPID != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if st, err := readStat(pid, pid); err != nil || st.state == 't' || st.state == 'T' {
		t.Errorf("state %c, %v", st.state, err)
	}
}

func TestProgramsThatCannotBeRecordedAreLetGo(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	failure := errors.New("no")
	for _, c := range []struct {
		name, path string
		want       error
		text       string
	}{
		{"failing", build(t, "arrives.c", "gcc"), failure, "arrived - 1\nok\n"},
		{"static", build(t, "arrives.c", "gcc", "-static"), failure, "arrived - 1\nok\n"},
		{"go", buildGo(t), ErrNotReady, "ready\nok\n"},
	} {
		e := startExecer(t, "plain", c.path)
		if err := e.await(func(s *Stopped) error { return failure }); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		checkUntraced(t, e.process)
		if text := e.finish(); text != c.text {
			t.Errorf("%s: %q", c.name, text)
		}
	}
}

func TestGoProgramIsAwaitedAtItsEntry(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	e := startExecer(t, "plain", buildGo(t))
	options := execOptions
	options.GoAtEntry = true
	err := AwaitExec(context.Background(), e.process, e.thread, longPatience, options, e.leave, func(s *Stopped) error {
		defer s.Process().Close()
		regs, err := s.Threads()[0].Regs()
		if err != nil {
			return err
		}
		if auxv, err := s.Process().Auxv(); err != nil || regs.PC() != auxv.Entry {
			t.Errorf("stands at %#x, entry is %#x, %v", regs.PC(), auxv.Entry, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if text := e.finish(); text != "ready\nok\n" {
		t.Errorf("%q", text)
	}
}
