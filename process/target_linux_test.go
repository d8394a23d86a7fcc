package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

var built struct {
	sync.Mutex
	dir   string
	paths map[string]string
}

// build compiles a source in testdata once for all tests.
func build(t testing.TB, source, compiler string, flags ...string) string {
	t.Helper()
	realtest.Need(t, realtest.Capability(compiler))
	built.Lock()
	defer built.Unlock()
	key := source + compiler + strings.Join(flags, " ")
	if path := built.paths[key]; path != "" {
		return path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "process-test")
		if err != nil {
			t.Fatal(err)
		}
		built.dir, built.paths = dir, map[string]string{}
	}
	out := filepath.Join(built.dir, fmt.Sprintf("%s%d", strings.TrimSuffix(source, ".c"), len(built.paths)))
	args := append([]string{"-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", out, filepath.Join("testdata", source)}, flags...)
	if text, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", compiler, args, err, text)
	}
	built.paths[key] = out
	return out
}

// A target is a running test program that prints "ready" first.
type target struct {
	t      testing.TB
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  *bufio.Reader
	stderr bytes.Buffer
	ended  bool
}

func startTarget(t testing.TB, path string, args ...string) *target {
	t.Helper()
	g := &target{t: t, cmd: exec.Command(path, args...)}
	g.cmd.Stderr = &g.stderr
	var err error
	if g.stdin, err = g.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := g.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	g.lines = bufio.NewReader(out)
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !g.ended {
			_ = g.cmd.Process.Kill()
			_ = g.cmd.Wait()
		}
	})
	if line := g.line(); line != "ready" {
		t.Fatalf("%s said %q first (stderr %s)", path, line, &g.stderr)
	}
	return g
}

func (g *target) pid() int { return g.cmd.Process.Pid }

func (g *target) line() string {
	line, _ := g.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n")
}

// finish tells the target to end and returns all it still has to say. A target
// that does not end well fails the test.
func (g *target) finish() string {
	g.t.Helper()
	_, _ = io.WriteString(g.stdin, "\n")
	_ = g.stdin.Close()
	timer := time.AfterFunc(10*time.Second, func() { _ = g.cmd.Process.Kill() })
	defer timer.Stop()
	text, _ := io.ReadAll(g.lines)
	err := g.cmd.Wait()
	g.ended = true
	if err != nil {
		g.t.Fatalf("target ended with %v: %s%s", err, text, &g.stderr)
	}
	return string(text)
}

func openTarget(t testing.TB, g *target) *Process {
	t.Helper()
	p, err := Open(g.pid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func stop(t testing.TB, p *Process, fn func(*Stopped) error) time.Duration {
	t.Helper()
	took, err := p.Stop(context.Background(), StopOptions{Timeout: time.Minute}, fn)
	if err != nil {
		t.Fatal(err)
	}
	return took
}

// unnoticed says whether selfcheck.c has seen nothing of us. On arm64 a thread may come to a call that stops end just between the look at it and
// the stop (see noteCall): rarely, but emulated machines make the time between the two long.
func unnoticed(text string) bool {
	most := 0
	if runtime.GOARCH == "arm64" {
		most = 16 // of 1,700 stops, where 4 to 7 were seen
	}
	interrupted := -1
	_, _ = fmt.Sscanf(text, "eintr %d", &interrupted)
	return interrupted >= 0 && interrupted <= most && strings.HasSuffix(text, " handled 0 alarms 1\nok\n")
}

func doNothing(*Stopped) error { return nil }

func TestMain(m *testing.M) {
	if role := os.Getenv("PROCESS_TEST_ROLE"); role != "" {
		os.Exit(playRole(role, os.Args[1:]))
	}
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

func itoa(n int) string { return strconv.Itoa(n) }

func hexAddr(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// lackingLibrary builds a program whose library is gone.
func lackingLibrary(t testing.TB) string {
	t.Helper()
	realtest.Need(t, realtest.GCC)
	dir := t.TempDir()
	lib := filepath.Join(dir, "libgone.so")
	path := buildWithLibrary(t, dir, lib)
	if err := os.Remove(lib); err != nil {
		t.Fatal(err)
	}
	return path
}

// buildWithLibrary builds a program that needs the shared library lib.
func buildWithLibrary(t testing.TB, dir, lib string) string {
	t.Helper()
	source := filepath.Join(dir, "lib.c")
	if err := os.WriteFile(source, []byte("int gone(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "main.c")
	if err := os.WriteFile(main, []byte("int gone(void);\nint main(void) { return gone(); }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "main")
	for _, args := range [][]string{{"-shared", "-fPIC", "-o", lib, source}, {"-o", out, main, lib}} {
		if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc %v: %v\n%s", args, err, text)
		}
	}
	return out
}
