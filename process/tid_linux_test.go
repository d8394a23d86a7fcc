package process

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// tidInPthread is how far from the thread pointer a thread's ID is, in the versions of Debian 12: struct pthread's tid. On arm64 the struct lies
// before what the thread pointer leads to.
var tidInPthread = map[string]map[string]int32{
	"glibc": {"amd64": 0x2d0, "arm64": -0x670}, "musl": {"amd64": 0x30, "arm64": -0xa8},
}

func TestThreadIDIsFoundInEveryCLibrary(t *testing.T) {
	for _, c := range cLibraries {
		for _, threads := range []string{"0", "1", "7"} {
			t.Run(c.compiler+strings.Join(c.flags, "")+threads, func(t *testing.T) {
				g := startTarget(t, build(t, "idle.c", c.compiler, c.flags...), threads)
				p := openTarget(t, g)
				stop(t, p, func(s *Stopped) error {
					off, err := s.TIDOffset()
					if err != nil {
						return err
					}
					want := tidInPthread["glibc"][runtime.GOARCH]
					if c.compiler == "musl-gcc" {
						want = tidInPthread["musl"][runtime.GOARCH]
					}
					if off != want {
						t.Errorf("offset %#x, want %#x", off, want)
					}
					return nil
				})
				g.finish()
			})
		}
	}
}

func TestThreadIDIsTheOneOfTheTargetsNamespace(t *testing.T) {
	realtest.Need(t, realtest.Unshare)
	path := build(t, "idle.c", "gcc")
	realtest.NeedThat(t, "PID namespaces", exec.Command("unshare", "--pid", "--fork", "true").Run())
	g := startTarget(t, "unshare", "--pid", "--fork", "--kill-child", path, "3")
	children, err := os.ReadFile(taskPath(g.pid(), g.pid(), "children"))
	if err != nil {
		t.Fatal(err)
	}
	pids, err := atois(strings.Fields(string(children)))
	if err != nil || len(pids) != 1 {
		t.Fatalf("children %q, %v", children, err)
	}
	p, err := Open(pids[0])
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	stop(t, p, func(s *Stopped) error {
		info, err := s.Thread(p.Pid()).Info()
		if err != nil || info.NSTID != 1 {
			t.Errorf("first thread is %d inside, %v; want 1", info.NSTID, err)
		}
		off, err := s.TIDOffset()
		if err != nil || off != tidInPthread["glibc"][runtime.GOARCH] {
			t.Errorf("offset %#x, %v", off, err)
		}
		return nil
	})
	g.finish()
}

// goProgram is a Go program without cgo; its threads have no C library.
const goProgram = `package main

import "os"

func main() {
	println("started")
	os.Stdout.WriteString("ready\n")
	os.Stdin.Read(make([]byte, 1))
	os.Stdout.WriteString("ok\n")
}
`

func buildGo(t testing.TB) string {
	t.Helper()
	realtest.Need(t, realtest.GoTool)
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(goProgram), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "prog"), source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, text)
	}
	return filepath.Join(dir, "prog")
}

func TestGoProgramHasNoThreadIDButCanBeStopped(t *testing.T) {
	g := startTarget(t, buildGo(t))
	p := openTarget(t, g)
	for range 20 {
		stop(t, p, func(s *Stopped) error {
			if off, err := s.TIDOffset(); !errors.Is(err, ErrNoThreadID) {
				t.Errorf("offset %#x, %v", off, err)
			}
			err := inject(s)
			if err != nil && !errors.Is(err, ErrNoSafeThread) {
				return err
			}
			return nil
		})
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}
