package process

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"golang.org/x/sys/unix"
)

func notCalled(t *testing.T) func(*Stopped) error {
	return func(*Stopped) error {
		t.Error("called")
		return nil
	}
}

func (e *execer) signal(sig unix.Signal) {
	e.t.Helper()
	if err := unix.Kill(e.process, sig); err != nil {
		e.t.Error(err)
	}
}

func TestStopSignalsHoldAnExecThatIsAwaited(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	path := build(t, "arrives.c", "gcc")
	e := startExecer(t, "plain", path)
	before := must(os.Readlink(procPath(e.process, "exe")))
	held := make(chan struct{})
	called := false
	err := AwaitExec(context.Background(), e.process, e.thread, longPatience, execOptions, func() {
		e.signal(unix.SIGSTOP)
		e.leave()
		go func() {
			defer close(held)
			time.Sleep(20 * time.Millisecond)
			if now := must(os.Readlink(procPath(e.process, "exe"))); now != before {
				t.Errorf("it went on while stopped: %s", now)
			}
			e.signal(unix.SIGCONT)
		}()
	}, func(s *Stopped) error {
		called = true
		e.signal(unix.SIGSTOP)
		return inject(s)
	})
	<-held
	if err != nil || !called {
		t.Error(called, err)
	}
	waitForState(t, e.process, 'T')
	e.signal(unix.SIGCONT)
	if text := e.finish(); text != "arrived - 1\nok\n" {
		t.Errorf("%q", text)
	}
}

func TestStoppedThreadIsAwaited(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	e := startExecer(t, "plain", build(t, "arrives.c", "gcc"))
	e.signal(unix.SIGSTOP)
	waitForState(t, e.process, 'T')
	err := AwaitExec(context.Background(), e.process, e.thread, 20*time.Millisecond, execOptions, e.leave, notCalled(t))
	if !errors.Is(err, ErrNoExec) {
		t.Error(err)
	}
	waitForState(t, e.process, 'T')
	e.signal(unix.SIGCONT)
	if text := e.finish(); text != "arrived - 1\nok\n" {
		t.Errorf("%q", text)
	}
}

func TestSignalThatKillsDoesSoWhileAnExecIsAwaited(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	e := startExecer(t, "plain", build(t, "arrives.c", "gcc"))
	err := AwaitExec(context.Background(), e.process, e.thread, longPatience, execOptions, func() { e.signal(unix.SIGTERM) }, notCalled(t))
	if !errors.Is(err, ErrNoProcess) {
		t.Error(err)
	}
	e.ended = true
	var end *exec.ExitError
	if err := e.cmd.Wait(); !errors.As(err, &end) || end.String() != "signal: terminated" {
		t.Error(err)
	}
}

func TestThreadIsAwaitedByOneOnly(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	e := startExecer(t, "plain", build(t, "arrives.c", "gcc"))
	err := AwaitExec(context.Background(), e.process, e.thread, longPatience, execOptions, func() {
		err := AwaitExec(context.Background(), e.process, e.thread, longPatience, execOptions, func() { t.Error("ready") }, notCalled(t))
		if !errors.Is(err, ErrTraced) {
			t.Error(err)
		}
		e.leave()
	}, inject)
	if err != nil {
		t.Error(err)
	}
	if text := e.finish(); text != "arrived - 1\nok\n" {
		t.Errorf("%q", text)
	}
	if err := AwaitExec(context.Background(), os.Getpid(), os.Getpid(), longPatience, execOptions, func() {}, notCalled(t)); !errors.Is(err, ErrSelf) {
		t.Error(err)
	}
}

func TestManyExecsAreAwaitedAtOnce(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	path := build(t, "arrives.c", "gcc")
	var all []*execer
	for range 8 {
		all = append(all, startExecer(t, "plain", path))
	}
	var wg sync.WaitGroup
	for _, e := range all {
		wg.Go(func() {
			if err := e.await(inject); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, e := range all {
		if text := e.finish(); text != "arrived - 1\nok\n" {
			t.Errorf("%q", text)
		}
	}
}

func TestExecWithQuietSignalsBlockedIsAwaited(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	e := startExecer(t, "blocked", build(t, "arrives.c", "gcc"))
	if err := e.await(func(s *Stopped) error { return checkLaunched(t, s, false) }); err != nil {
		t.Error(err)
	}
	if text := e.finish(); text != "signal 23 is blocked\nsignal 28 is blocked\narrived - 1\nok\n" {
		t.Errorf("%q", text)
	}
}

func TestForeignProgramIsLetGo(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	e := startExecer(t, "plain", realtest.Small32(t))
	if err := e.await(notCalled(t)); !errors.Is(err, ErrForeignArch) {
		t.Error(err)
	}
	if text := e.finish(); text != "ready\n" {
		t.Errorf("%q", text)
	}
}

func TestExecOfProgramThatLacksALibrary(t *testing.T) {
	path := lackingLibrary(t)
	e := startExecer(t, "plain", path)
	if err := e.await(notCalled(t)); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
	e.ended = true
	var end *exec.ExitError
	if err := e.cmd.Wait(); !errors.As(err, &end) || end.ExitCode() != 127 {
		t.Error(err)
	}
}

func TestExecInAnotherPIDNamespaceIsAwaited(t *testing.T) {
	realtest.Need(t, realtest.Unshare)
	realtest.NeedThat(t, "PID namespaces", exec.Command("unshare", "--pid", "--fork", "true").Run())
	e := &execer{goFile: filepath.Join(t.TempDir(), "go")}
	e.target = startTarget(t, "unshare", "--pid", "--fork", "--kill-child",
		build(t, "execs.c", "gcc"), "plain", e.goFile, build(t, "arrives.c", "gcc", "-static"))
	e.identify()
	pids, err := atois(strings.Fields(string(must(os.ReadFile(taskPath(e.pid(), e.pid(), "children"))))))
	if err != nil || len(pids) != 1 || e.process != 1 {
		t.Fatalf("%v, %v; inside it is %d", pids, err, e.process)
	}
	e.process, e.thread = pids[0], pids[0]
	err = e.await(func(s *Stopped) error {
		_, err := s.TIDOffset()
		return errors.Join(err, inject(s))
	})
	if err != nil {
		t.Error(err)
	}
	if text := e.finish(); text != "arrived - 1\nok\n" {
		t.Errorf("%q", text)
	}
}

// constructed is a program with a library that starts a thread, and waits for it, before the program's entry point.
func constructed(t *testing.T) string {
	t.Helper()
	realtest.Need(t, realtest.GCC)
	dir := t.TempDir()
	lib, path := filepath.Join(dir, "libearly.so"), filepath.Join(dir, "late")
	for _, args := range [][]string{
		{"-shared", "-fPIC", "-pthread", "-o", lib, "testdata/early.c"},
		{"-pthread", "-o", path, "testdata/arrives.c", "-Wl,--no-as-needed", lib},
	} {
		if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc %v: %v\n%s", args, err, text)
		}
	}
	return path
}

func TestThreadsOfConstructorsStandAtTheEntry(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	path := constructed(t)
	both := func(s *Stopped) error {
		if n := len(s.Threads()); n != 2 {
			t.Errorf("%d threads", n)
		}
		return inject(s)
	}
	if text, status := launch(t, []string{path}, both); text != "arrived - 1\nok\n" || status != (ExitStatus{}) {
		t.Errorf("launched: %q, %+v", text, status)
	}
	e := startExecer(t, "plain", path)
	if err := e.await(both); err != nil {
		t.Error(err)
	}
	if text := e.finish(); text != "arrived - 1\nok\n" {
		t.Errorf("%q", text)
	}
}

// nobody are the arguments of a command that runs the rest of them without privileges: as we are, unless we are root.
func nobody(args ...string) []string {
	if os.Geteuid() != 0 {
		return append([]string{"env"}, args...)
	}
	return append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}, args...)
}

// copyFile copies a program to where everybody may run it.
func copyFile(t *testing.T, dir, from string, mode os.FileMode) string {
	t.Helper()
	to := filepath.Join(dir, filepath.Base(from)+strconv.FormatUint(uint64(mode), 36))
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close(), os.Chmod(to, mode)); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestSetuidProgramKeepsItsPrivileges(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	root := os.Geteuid() == 0
	if root {
		realtest.Need(t, realtest.Setpriv)
	}
	dir, err := os.MkdirTemp("", "process-setuid")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	self := copyFile(t, dir, must(os.Executable()), 0o755)
	execs := copyFile(t, dir, build(t, "execs.c", "gcc"), 0o755)
	plain := copyFile(t, dir, build(t, "arrives.c", "gcc"), 0o755)
	setuid := copyFile(t, dir, build(t, "arrives.c", "gcc"), 0o755|os.ModeSetuid)
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("#! "+setuid+" -\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	gained := ""
	if root {
		gained = " setuid"
	}
	for _, c := range []struct{ path, tracer, text string }{
		{plain, "fn", "arrived - 1\nok\n"},
		{setuid, ErrNotPermitted.Error(), "arrived - 1" + gained + "\nok\n"},
		{script, ErrNotPermitted.Error(), "arrived - 3" + gained + "\nok\n"},
	} {
		e := &execer{goFile: filepath.Join(dir, "go")}
		_ = os.Remove(e.goFile)
		args := nobody(execs, "plain", e.goFile, c.path)
		e.target = startTarget(t, args[0], args[1:]...)
		e.identify()
		args = nobody("env", "PROCESS_TEST_ROLE=await-exec", self, strconv.Itoa(e.process), strconv.Itoa(e.thread), e.goFile)
		tracer := startTarget(t, args[0], args[1:]...)
		if line := tracer.line(); line != "go" {
			t.Fatalf("%s: tracer: %q %s", c.path, line, &tracer.stderr)
		}
		if line := tracer.line(); !strings.Contains(line, c.tracer) {
			t.Errorf("%s: tracer: %q %s", c.path, line, &tracer.stderr)
		}
		if text := e.finish(); text != c.text {
			t.Errorf("%s: %q", c.path, text)
		}
		killRole(tracer)
	}
}
