package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// launch runs a program to its end and returns what it wrote and how it ended.
func launch(t *testing.T, args []string, fn func(*Stopped) error) (string, ExitStatus) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l, err := Launch(context.Background(), Command{Path: args[0], Args: args, Stdout: w}, StopOptions{Timeout: 10 * time.Second}, fn)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	status, err := l.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return string(text), status
}

func TestProgramsAreLaunchedToTheirEntry(t *testing.T) {
	for _, c := range cLibraries {
		t.Run(c.compiler+strings.Join(c.flags, ""), func(t *testing.T) {
			path := build(t, "hello.c", c.compiler, c.flags...)
			static := len(c.flags) > 0
			calls := 0
			text, status := launch(t, []string{path, "3", "x"}, func(s *Stopped) error {
				calls++
				return checkLaunched(t, s, static)
			})
			if calls != 1 || text != "hello 3\n" || status != (ExitStatus{Code: 3}) {
				t.Errorf("%d calls, %q, %+v", calls, text, status)
			}
			if _, status = launch(t, []string{path, "-9"}, doNothing); status != (ExitStatus{Signal: 9}) {
				t.Errorf("killed: %+v", status)
			}
			if _, status = launch(t, []string{path, "-15"}, doNothing); status != (ExitStatus{Signal: 15}) {
				t.Errorf("terminated: %+v", status)
			}
		})
	}
}

func checkLaunched(t *testing.T, s *Stopped, static bool) error {
	p := s.Process()
	if len(s.Threads()) != 1 {
		t.Errorf("%d threads", len(s.Threads()))
	}
	regs, err := s.Threads()[0].Regs()
	if err != nil {
		return err
	}
	auxv, err := p.Auxv()
	if err != nil {
		return err
	}
	if !static && regs.PC() != auxv.Entry {
		t.Errorf("stopped at %#x, entry is %#x", regs.PC(), auxv.Entry)
	}
	if _, err := s.TIDOffset(); err != nil {
		t.Error(err)
	}
	if pid, err := inTarget(s, unix.SYS_GETPID); err != nil || pid != uint64(p.Pid()) {
		t.Errorf("getpid: %d, %v", pid, err)
	}
	return checkText(t, p)
}

// checkText compares all mapped code with its file: no breakpoint is left.
func checkText(t *testing.T, p *Process) error {
	maps, err := p.Maps()
	if err != nil {
		return err
	}
	compared := 0
	for _, m := range maps {
		if m.Perm&PermExec == 0 || m.Inode == 0 {
			continue
		}
		path, err := p.ExeFile(m)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		want, got := make([]byte, m.Size()), make([]byte, m.Size())
		n, err := f.ReadAt(want, int64(m.Offset))
		if err != nil && err != io.EOF {
			return err
		}
		if _, err := p.ReadAt(got[:n], m.Start); err != nil {
			return err
		}
		if !bytes.Equal(want[:n], got[:n]) {
			t.Errorf("%s: text differs from the file", m.Path)
		}
		compared++
	}
	if compared == 0 {
		t.Error("no code found")
	}
	return nil
}

func TestLaunchedProgramTakesSignalsAndStops(t *testing.T) {
	path := build(t, "hello.c", "gcc")
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	// It ends itself by SIGUSR1, which it doesn't handle.
	l, err := Launch(context.Background(), Command{Path: path, Args: []string{path, "-18"}}, StopOptions{}, doNothing)
	if err != nil {
		t.Fatal(err)
	}
	waitForState(t, l.Pid(), 'S') // in pause; signal 18 is SIGCONT and changes nothing
	for range 5 {
		stop(t, l.Process, inject)
	}
	status, err := l.Process.Status()
	if err != nil || status.TracerPID != 0 || status.SigBlocked != 0 {
		t.Errorf("status %+v, %v", status, err)
	}
	if err := l.Signal(unix.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if status, err := l.Wait(); err != nil || status.Signal != int(unix.SIGUSR1) {
		t.Errorf("%+v, %v", status, err)
	}
}

func TestLaunchedProgramIgnoresWhatItIsTold(t *testing.T) {
	path := build(t, "hello.c", "gcc")
	own, err := os.ReadFile("/proc/self/status")
	var inherited uint64 // nohup's SIGHUP, say
	if _, line, found := strings.Cut(string(own), "\nSigIgn:\t"); err != nil || !found {
		t.Fatal("no SigIgn in /proc/self/status", err)
	} else if _, err := fmt.Sscanf(line, "%x", &inherited); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ignored []syscall.Signal
		want    uint64
	}{
		{nil, 0},
		{[]syscall.Signal{unix.SIGINT, unix.SIGQUIT}, 1<<(unix.SIGINT-1) | 1<<(unix.SIGQUIT-1)},
		{[]syscall.Signal{unix.SIGPIPE, unix.SIGHUP}, 1<<(unix.SIGPIPE-1) | 1<<(unix.SIGHUP-1)},
	} {
		l, err := Launch(context.Background(), Command{Path: path, Args: []string{path, "4"}, Ignored: c.ignored}, StopOptions{}, func(s *Stopped) error {
			status, err := s.Process().Status()
			const theirs = 1<<(unix.SIGHUP-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGQUIT-1) | 1<<(unix.SIGPIPE-1)
			if got := status.SigIgnored & theirs; got != c.want|inherited&theirs {
				t.Errorf("%v: ignored %#x, want %#x", c.ignored, got, c.want)
			}
			return errors.Join(err, checkText(t, s.Process()))
		})
		if err != nil {
			t.Fatal(err)
		}
		if status, err := l.Wait(); err != nil || status.Code != 4 {
			t.Errorf("%v: %+v, %v", c.ignored, status, err)
		}
	}
	_, err = Launch(context.Background(), Command{Path: path, Ignored: []syscall.Signal{unix.SIGKILL}}, StopOptions{}, doNothing)
	if !errors.Is(err, unix.EINVAL) {
		t.Errorf("ignoring SIGKILL: %v", err)
	}
}

func TestCommandsThatCannotBeLaunched(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	called := func(*Stopped) error {
		t.Error("called")
		return nil
	}
	for _, c := range []struct {
		name, path string
		want       error
	}{
		{"absent name", "no-such-command-here", ErrCommandNotFound},
		{"absent path", filepath.Join(dir, "none"), ErrCommandNotFound},
		{"absent interpreter", write("script", "#!/no/such/interpreter\n", 0o755), ErrCommandNotFound},
		{"not executable", write("data", "text", 0o644), ErrCommandNotExecutable},
		{"no program", write("bad", "\x7fELFtext", 0o755), ErrCommandNotExecutable},
		{"directory", dir, ErrCommandNotExecutable},
		{"go", buildGo(t), ErrNotReady},
	} {
		l, err := Launch(context.Background(), Command{Path: c.path}, StopOptions{}, called)
		if !errors.Is(err, c.want) || l != nil {
			t.Errorf("%s: %v, %v, want %v", c.name, l, err, c.want)
		}
	}
}

func TestScriptIsLaunchedInItsInterpreter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho \"$1\"\nexit 7\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	text, status := launch(t, []string{path, "word"}, doNothing)
	if text != "word\n" || status.Code != 7 {
		t.Errorf("%q, %+v", text, status)
	}
}

func TestLaunchThatFailsLeavesNoProcess(t *testing.T) {
	failure := errors.New("no")
	pid := 0
	l, err := Launch(context.Background(), Command{Path: build(t, "idle.c", "gcc")}, StopOptions{}, func(s *Stopped) error {
		pid = s.Process().Pid()
		return failure
	})
	if !errors.Is(err, failure) || l != nil || pid == 0 {
		t.Errorf("%v, %v", l, err)
	}
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
}

func TestProgramThatLacksALibraryEndsEarly(t *testing.T) {
	path := lackingLibrary(t)
	l, err := Launch(context.Background(), Command{Path: path}, StopOptions{}, func(*Stopped) error {
		t.Error("called")
		return nil
	})
	if !errors.Is(err, ErrEnded) || l == nil {
		t.Fatalf("%v, %v", l, err)
	}
	if status, err := l.Wait(); err != nil || status.Code != 127 {
		t.Errorf("%+v, %v", status, err)
	}
}
