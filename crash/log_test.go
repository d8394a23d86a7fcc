package crash

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

func TestGosPanicsAreRead(t *testing.T) {
	realtest.Need(t, realtest.GoTool)
	dir := t.TempDir()
	source := filepath.Join(dir, "a.go")
	text := `package main

type T struct{ n *int }

//go:noinline
func (t *T) deep(a, b int) int { return *t.n + a + b }

func waits(c chan int) { <-c }

func main() {
	go waits(make(chan int))
	new(T).deep(1, 2)
}
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", "run", source)
	c.Env = append(os.Environ(), "GOTRACEBACK=all", "GOFLAGS=-ldflags=-s")
	out, err := c.CombinedOutput()
	if err == nil {
		t.Fatalf("it did not panic: %s", out)
	}
	r := readString(t, "an earlier line\n"+string(out))
	if r.Format != GoPanic || !strings.HasPrefix(r.Reason.Text, "panic: runtime error: invalid memory address") || r.Reason.Signal != "SIGSEGV" || !r.Reason.Has {
		t.Errorf("%v, reason %+v\n%s", r.Format, r.Reason, out)
	}
	first := r.Threads[0]
	if !first.Crashed || first.TID != 1 || first.State != "running" || len(first.Frames) != 2 {
		t.Fatalf("the first goroutine is %+v\n%s", first, out)
	}
	if f := first.Frames[0]; f.Function != "main.(*T).deep" || filepath.Base(f.File) != "a.go" || f.Line != 6 {
		t.Errorf("the first frame is %+v", f)
	}
	if f := first.Frames[1]; f.Function != "main.main" || f.Line != 12 {
		t.Errorf("the second frame is %+v", f)
	}
}

const coredumpReport = `Nov 23 10:00:00 host systemd-coredump[600]: [🡕] Process 512 (prog) of user 1000 dumped core.

                Module libc.so.6 from deb glibc-2.36-9.amd64 with build-id 93ac61ec5a8eb1396f9fbd350e3169a558528a40
                Module prog with build-id 0123456789abcdef0123456789abcdef01234567
                Stack trace of thread 512:
                #0  0x00007f2d0005e2a8 raise (libc.so.6 + 0x3c2a8)
                #1  0x0000000000401136 n/a (/usr/bin/prog + 0x1136)
                #2  0x0000000000000000 n/a (n/a + 0x0)

                Stack trace of thread 513:
                #0  0x00007f2d0005e2b8 poll (libc.so.6 + 0x3c2b8)
                ELF object binary architecture: AMD x86-64
`

func TestSystemdsTextIsRead(t *testing.T) {
	r := readString(t, coredumpReport)
	if r.Format != CoredumpText || r.Process.PID != 512 || r.Process.Name != "prog" || len(r.Threads) != 2 || !r.Threads[0].Crashed || r.Threads[1].TID != 513 {
		t.Fatalf("%v, process %+v, %d threads", r.Format, r.Process, len(r.Threads))
	}
	if got, want := stackText(r.Threads[0]), "raise prog+0x1136 0x0"; got != want {
		t.Errorf("the stack is %v, want %v", got, want)
	}
	if im := r.Threads[0].Frames[1].Image; im.ID != "0123456789abcdef0123456789abcdef01234567" || im.Path != "/usr/bin/prog" {
		t.Errorf("the image is %+v", im)
	}
}

func FuzzLogs(f *testing.F) {
	fuzz(f, coredumpReport, "panic: x\n\ngoroutine 1 gp=0x1 [running]:\nmain.f(0x1, {0x2})\n\t/a.go:1 +0x1d fp=0x1 pc=0x2\ncreated by main.g in goroutine 1\n\t/a.go:9\n\nrax 0x1\n")
}
