package hostile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/callreel/callreel/internal/realtest"
)

// Bounds that no attack may move. They are far above what honest targets of this size take, and far below what attacks took.
const (
	// maxMemory is the resident memory that a callreel may have: the budget of one target and what its recording takes besides.
	maxMemory = 800 << 20
	// maxSpace is the address space it is given, so that what goes wrong doesn't take the machine along.
	maxSpace = 24 << 30
	// patience is how long a callreel may take that is told to end at once.
	patience = 90 * time.Second
	// few is how often that is tried that has no moment to meet.
	few = 5
)

// races is how often a race is tried.
func races(t testing.TB) int { return realtest.Repeats(t, 10) }

// ran is what one run of callreel left.
type ran struct {
	realtest.Result
	memory int64 // resident, at its highest, in bytes
	took   time.Duration
	args   []string
}

// callreel runs callreel as root to its end.
func callreel(t testing.TB, args ...string) ran {
	t.Helper()
	return start(t, args...).wait(t)
}

// running is a callreel that has not ended.
type running struct {
	cmd            *exec.Cmd
	stdout, stderr *bytes.Buffer
	cancel         context.CancelFunc
	ctx            context.Context
	args           []string
	ended          chan error
	began          time.Time
}

// start runs callreel as root, with a bound on its address space.
func start(t testing.TB, args ...string) *running {
	t.Helper()
	r := &running{args: args, stdout: new(bytes.Buffer), stderr: new(bytes.Buffer), ended: make(chan error, 1), began: time.Now()}
	r.ctx, r.cancel = context.WithTimeout(context.Background(), patience)
	all := append([]string{"--as=" + strconv.Itoa(maxSpace), realtest.CallreelPath(t)}, args...)
	r.cmd = exec.CommandContext(r.ctx, "prlimit", all...)
	r.cmd.Stdout, r.cmd.Stderr = r.stdout, r.stderr
	r.cmd.WaitDelay = 5 * time.Second
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.cmd.Wait() }()
	t.Cleanup(r.cancel)
	return r
}

// interrupt tells it to end.
func (r *running) interrupt() { _ = r.cmd.Process.Signal(os.Interrupt) } // it may have ended

// kill ends it as SIGKILL does.
func (r *running) kill() {
	_ = r.cmd.Process.Kill()
	<-r.ended
	r.cancel()
}

// wait waits for its end and fails the test if that is no decent one.
func (r *running) wait(t testing.TB) ran {
	t.Helper()
	err := <-r.ended
	r.cancel()
	out := ran{args: r.args, took: time.Since(r.began), Result: realtest.Result{Stdout: r.stdout.String(), Stderr: r.stderr.String()}}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatalf("callreel %q: %v\n%s", r.args, err, out.Stderr)
	}
	state := r.cmd.ProcessState
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		out.Code = 128 + int(ws.Signal())
	} else {
		out.Code = state.ExitCode()
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		out.memory = usage.Maxrss << 10
	}
	if r.ctx.Err() == context.DeadlineExceeded {
		t.Errorf("callreel %q had not ended after %v", r.args, patience)
	}
	out.sound(t)
	return out
}

// sound fails the test if callreel has ended otherwise than it says it does, taken too much memory, or printed what a terminal obeys.
func (r ran) sound(t testing.TB) {
	t.Helper()
	if r.Code < 0 || r.Code > 3 {
		t.Errorf("callreel %q: exit code %d\n%.500s", r.args, r.Code, r.Stderr)
	}
	for _, bad := range []string{"goroutine ", "panic:", "fatal error:", "unexpected fault", "SIGBUS", "SIGSEGV"} {
		if strings.Contains(r.Stderr, bad) {
			t.Errorf("callreel %q crashed:\n%.500s", r.args, r.Stderr)
			break
		}
	}
	if r.memory > maxMemory {
		t.Errorf("callreel %q took %d MiB of memory, at most %d are right", r.args, r.memory>>20, maxMemory>>20)
	}
	for name, text := range map[string]string{"stdout": r.Stdout, "stderr": r.Stderr} {
		if at := strings.IndexFunc(text, isControl); at >= 0 {
			t.Errorf("callreel %q: its %s has the control character %#x in %.60q", r.args, name, []rune(text[at:])[0], text[max(0, at-20):])
		}
	}
}

// isControl says whether a terminal may obey a character instead of showing it.
func isControl(c rune) bool {
	return c < ' ' && c != '\n' && c != '\t' && c != '\r' || c >= 0x7F && c < 0xA0 || unicode.Is(unicode.Cf, c)
}

// on waits until a recording is on, or has ended, and says which: FILE is there then.
func (r *running) on(t testing.TB, file string) bool {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(2 * time.Millisecond) {
		if info, err := os.Stat(file); err == nil && info.Size() > 0 {
			return true
		}
		select {
		case err := <-r.ended:
			r.ended <- err
			return false
		default:
		}
	}
	t.Fatalf("callreel %q: no reel\n%s", r.args, r.stderr.String())
	return false
}

// secret is a file of root's that nobody else may read or write, in a folder of root's that all can search.
type secret struct {
	path string
	was  []byte
	info os.FileInfo
}

func newSecret(t testing.TB, u *realtest.User) *secret {
	t.Helper()
	s := &secret{path: filepath.Join(filepath.Dir(u.Folder), "secret"), was: bytes.Repeat([]byte("secret of root's\n"), 1000)}
	err := os.WriteFile(s.path, s.was, 0o600)
	if err == nil {
		s.info, err = os.Stat(s.path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// changed says what has become of it, nil if nothing.
func (s *secret) changed() error {
	info, err := os.Stat(s.path)
	if err != nil {
		return err
	}
	if info.Size() != s.info.Size() {
		return fmt.Errorf("%s has %d bytes, had %d", s.path, info.Size(), s.info.Size())
	}
	if now, err := os.ReadFile(s.path); err != nil || !bytes.Equal(now, s.was) {
		return fmt.Errorf("%s has other bytes (%v)", s.path, err)
	}
	return nil
}

// target builds a hostile target. It is linked statically: less to look at in each try.
func target(t testing.TB, name string) string {
	t.Helper()
	realtest.Need(t, realtest.Superuser, realtest.LivePtrace)
	return realtest.Build(t, name, "-static")
}

// intact fails the test if a process's text is not its file's.
func intact(t testing.TB, pid int) {
	t.Helper()
	if err := realtest.TextAsFile(pid); err != nil {
		t.Errorf("process %d: %v", pid, err)
	}
}
