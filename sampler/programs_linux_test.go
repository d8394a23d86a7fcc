package sampler_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/unwind"
)

// exeOf is the program that a process runs.
func exeOf(t testing.TB, pid int) string {
	t.Helper()
	path, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// compareMoments takes cores at moments of a program at work and compares.
func compareMoments(t *testing.T, pid, moments int) {
	t.Helper()
	for k := range moments {
		time.Sleep(time.Duration(37*k) * time.Millisecond) // not in step with the work
		core := gdbCore(t, pid)
		compare(t, coreOf(t, core), gdbStacks(t, exeOf(t, pid), core), false)
		if err := os.Remove(core); err != nil {
			t.Error(err)
		}
	}
}

func TestRedisAtWorkIsAsGDBSeesIt(t *testing.T) {
	realtest.Need(t, realtest.RedisTools, realtest.GDB, realtest.LivePtrace)
	s := realtest.Redis(t)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := s.Load(ctx, 4)
		done <- err
	}()
	compareMoments(t, s.Pid(), 3)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPythonAtWorkIsAsGDBSeesIt(t *testing.T) {
	realtest.Need(t, realtest.Python3, realtest.GDB, realtest.LivePtrace)
	p := realtest.Python(t, realtest.PythonWork)
	compareMoments(t, p.Pid(), 3)
	p.Finish()
}

func TestAssemblyOfOpenSSLIsAsGDBSeesIt(t *testing.T) {
	realtest.Need(t, realtest.OpenSSL, realtest.GDB, realtest.LivePtrace)
	for _, what := range [][]string{{"sha256"}, {"-evp", "aes-256-gcm"}, {"rsa2048"}} {
		t.Run(what[len(what)-1], func(t *testing.T) {
			t.Parallel()
			p := realtest.StartCommand(t, exec.Command("openssl", append([]string{"speed", "-seconds", "300"}, what...)...))
			for deadline := time.Now().Add(30 * time.Second); !strings.Contains(p.Stderr(), "Doing"); time.Sleep(5 * time.Millisecond) {
				if !p.Alive() || time.Now().After(deadline) {
					t.Fatalf("openssl does not start to work: %s", p.Stderr())
				}
			}
			compareMoments(t, p.Pid(), 2)
		})
	}
}

func TestNginxIsAsGDBSeesIt(t *testing.T) {
	realtest.Need(t, realtest.WebServer, realtest.GDB, realtest.LivePtrace)
	s := realtest.Nginx(t, realtest.NginxOptions{})
	compareMoments(t, s.Pid(), 1)
}

func TestProgramInASystemCallIsAsGDBSeesIt(t *testing.T) {
	realtest.Need(t, realtest.GDB, realtest.LivePtrace)
	for _, command := range [][]string{{"sleep", "100"}, {"cat"}, {"sh", "-c", "read line"}} {
		p := realtest.StartCommand(t, exec.Command(command[0], command[1:]...))
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/syscall")
			if err == nil && !strings.HasPrefix(string(text), "running") || time.Now().After(deadline) {
				break
			}
		}
		compareMoments(t, p.Pid(), 1)
	}
}

// stacksOf takes the stacks of a process that a test has started through a shell.
func stacksOf(t *testing.T, pid int) *sampler.Capture {
	t.Helper()
	return capture(t, pid, sampler.Options{})
}

// closing closes what there is no error of when the test is over.
func closing[T io.Closer](t *testing.T, c T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// musl calls main from a function without CFI that never returns, so that nothing there
// says where its caller is.
func TestHandlersWithoutCFIAreKnownByTheirTrampoline(t *testing.T) {
	realtest.Need(t, realtest.Musl)
	for _, mode := range []string{"handler", "altstack", "nested", "null"} {
		t.Run(mode, func(t *testing.T) {
			pid := start(t, realtest.Build(t, "handlers", "cc=musl-gcc", "-static"), mode)
			th := &stacksOf(t, pid).Threads[0]
			handlers, mains := 0, 0
			for _, f := range th.Frames {
				if f.Flags.Has(unwind.SignalFrame) {
					handlers++
				}
				if f.Function == "main" {
					mains++
				}
			}
			if want := map[bool]int{false: 1, true: 2}[mode == "nested"]; handlers != want || mains != 1 ||
				!th.End.Complete() && (th.End.Reason != unwind.NoCFI || len(th.Frames) < 3) {
				t.Errorf("%d signal frames, want %d; main %d times; %v\n%s", handlers, want, mains, th.End, listing(th))
			}
		})
	}
}

func TestReplacedAndRemovedFilesAreTheOnesThatWereLoaded(t *testing.T) {
	realtest.Need(t, realtest.GXX)
	for name, change := range map[string]func(path string) error{
		"removed":  os.Remove,
		"replaced": func(path string) error { return os.Rename(copyOf(t, "/bin/sh"), path) },
	} {
		t.Run(name, func(t *testing.T) {
			path := copyOf(t, realtest.Build(t, "deep"))
			pid := start(t, path)
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			c := stacksOf(t, pid)
			th := &c.Threads[0]
			if n := strings.Count(listing(th), "deep::level<"); n != 60 || !th.End.Complete() {
				t.Errorf("%d levels, %v\n%s", n, th.End, listing(th))
			}
			for _, im := range c.Images {
				if im.Path == path && !im.Deleted {
					t.Errorf("%s is not said to be gone", im.Path)
				}
			}
		})
	}
}

// copyOf copies a program to a place of the test's own.
func copyOf(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(out, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCoreRefusesAFileThatWasReplaced(t *testing.T) {
	realtest.Need(t, realtest.GXX, realtest.GDB)
	path := copyOf(t, realtest.Build(t, "deep"))
	core := gdbCore(t, start(t, path))
	if err := os.Rename(copyOf(t, "/bin/sh"), path); err != nil {
		t.Fatal(err)
	}
	c := coreOf(t, core)
	said := false
	for _, p := range c.Problems {
		said = said || strings.Contains(p.Error(), path) && strings.Contains(p.Error(), "not the one")
	}
	// gcore writes code into the core, so that the stack may be whole all the same; but
	// the replaced file must not name it.
	for _, f := range c.Threads[0].Frames {
		if f.Image != nil && f.Image.Path == path && f.Function != "" && !strings.HasPrefix(f.Function, "deep::") && f.Function != "main" && f.Function != "_start" {
			t.Errorf("frame %#x is %s", f.Address, f.Function)
		}
	}
	inCore := false
	for _, im := range c.Images {
		inCore = inCore || im.Path == path && im.Err() == nil
	}
	if !said && !inCore {
		t.Errorf("problems: %v", c.Problems)
	}
}

func TestThreadsThatComeAndGoDoNoHarm(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	p := startShell(t, realtest.Build(t, "threads"))
	pid := realtest.Children(p.Pid())[0]
	seen, whole := 0, 0
	for range 30 {
		c, err := sampler.Stacks(context.Background(), pid, sampler.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for k := range c.Threads {
			th := &c.Threads[k]
			if th.End.Reason == unwind.ThreadGone {
				continue
			}
			seen++
			if th.End.Complete() {
				whole++
			} else if testing.Verbose() {
				t.Logf("%v\n%s", th.End, listing(th))
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if seen == 0 || whole < seen*99/100 {
		t.Errorf("%d of %d stacks are whole", whole, seen)
	}
	p.Finish()
}

// startShell starts a target as a child of a shell, not of ours: os/exec waits for
// children and would take their stops, which are for the tracer, for their ends.
func startShell(t testing.TB, path string, args ...string) *realtest.Proc {
	t.Helper()
	realtest.Need(t, realtest.LivePtrace)
	shell := []string{"-c", `exec 3<&0; "$0" "$@" <&3 3<&- & exec 0</dev/null 3<&-; wait $!`, path}
	return realtest.Start(t, "/bin/sh", append(shell, args...)...)
}

func TestThreadThatCannotBeStoppedIsSeenWhereItWaits(t *testing.T) {
	realtest.Need(t, realtest.GCC)
	// The parent is the shell's child; its own child has its memory until it ends.
	pid := start(t, realtest.Build(t, "handlers"), "vfork")
	th := &stacksOf(t, pid).Threads[0]
	got := listing(th)
	known := []string{"wait_in_child", "act", "deeper", "main"}
	if runtime.GOARCH == "arm64" { // where vfork returns to is in a register, which nobody tells of
		known = []string{"vfork"}
	}
	for _, want := range known {
		if !strings.Contains(got, " "+want+" ") {
			t.Errorf("no %s, %v\n%s", want, th.End, got)
		}
	}
	for _, f := range th.Frames {
		if !f.Flags.Has(unwind.Late) {
			t.Errorf("frame %#x is not said to be late", f.Address)
		}
	}
}

func TestWalkOfAnEndedContextStops(t *testing.T) {
	realtest.Need(t, realtest.GXX)
	pid := start(t, realtest.Build(t, "deep"))
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if c, err := sampler.Stacks(ctx, pid, sampler.Options{}); err == nil {
		t.Errorf("%d threads", len(c.Threads))
	}
}
