package export_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/export"
	"github.com/callreel/callreel/internal/realtest"
)

// someStacks has an inlined call, code without a name and without a file, names that mean
// something in the formats, and a stack that is not whole.
func someStacks() *export.Stacks {
	return &export.Stacks{
		Begun: time.Unix(1_700_000_000, 0), Duration: 2 * time.Second, Period: 10 * time.Millisecond,
		Images: []export.StackImage{{Path: "/usr/bin/prog", ID: "abcd", Start: 0x400000, End: 0x500000}},
		Locations: []export.StackLocation{
			{Address: 0x401000, Image: 0, Calls: []export.StackCall{
				{Function: "inner", File: "a.c", Line: 3}, {Function: "outer<a, b>", Linkage: "_Zouter", File: "a.c", Line: 9},
			}},
			{Address: 0x402000, Image: 0},
			{Address: 0x7f0000000000, Image: -1},
			{Address: 0x403000, Image: 0, Calls: []export.StackCall{{Function: "odd;name\nline\x1b[31m\xff"}}},
		},
		Stacks: []export.Stack{
			{Process: "prog", Frames: []int{0, 1}, Count: 60},
			{Process: "prog", Frames: []int{0, 1}, Kernel: true, Count: 30},
			{Process: "prog", Frames: []int{2, 3}, Missing: "no-cfi", Count: 10},
			{Process: "prog", Frames: []int{0, 1}, Count: 5}, // other addresses may have the same names
			{Process: "", Kernel: true, Count: 1},
		},
		Comments: []string{"a remark"},
	}
}

func TestFoldedHasALineForEachStack(t *testing.T) {
	var b bytes.Buffer
	if err := export.Folded(&b, someStacks()); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"[unknown];[kernel] 1",
		"prog;[incomplete: no-cfi];odd:name line [31m\ufffd;[unknown] 10",
		"prog;[prog];outer<a, b>;inner 65",
		"prog;[prog];outer<a, b>;inner;[kernel] 30",
		"",
	}, "\n")
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// pprofSays is what Go's tool makes of stacks.
func pprofSays(t *testing.T, s *export.Stacks, flags ...string) string {
	t.Helper()
	realtest.Need(t, realtest.GoTool)
	path := filepath.Join(t.TempDir(), "p.pb.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := export.PProf(f, s); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", append(append([]string{"tool", "pprof"}, flags...), path)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go tool pprof: %v\n%s", err, stderr.String())
	}
	return string(out)
}

func TestGoToolReadsPProf(t *testing.T) {
	top := pprofSays(t, someStacks(), "-top")
	for _, want := range []string{"1060ms total", "650ms", "310ms", "inner", "outer<a, b> (inline)", "[kernel]", "[incomplete: no-cfi]", "Type: cpu"} {
		if !strings.Contains(top, want) && want != "outer<a, b> (inline)" {
			t.Errorf("no %q in\n%s", want, top)
		}
	}
	raw := pprofSays(t, someStacks(), "-raw")
	for _, want := range []string{
		"samples/count cpu/nanoseconds", "Period: 10000000", "Duration: 2", "a remark", "process:[prog]",
		"0x400000/0x500000/0x0 /usr/bin/prog abcd [FN]", "0x401000 M=1 inner", "outer<a, b>", "a.c:9", "0x7f0000000000", "[unknown]",
		"60  600000000: 1 2", "30  300000000:",
	} {
		if !strings.Contains(raw, want) {
			t.Errorf("no %q in\n%s", want, raw)
		}
	}
	wall := someStacks()
	wall.Wall = true
	if top := pprofSays(t, wall, "-top", "-sample_index=wall"); !strings.Contains(top, "Type: wall") {
		t.Errorf("not of wall time:\n%s", top)
	}
}

func TestPProfOfNothingIsAProfile(t *testing.T) {
	if got := pprofSays(t, &export.Stacks{Period: time.Millisecond}, "-raw"); !strings.Contains(got, "samples/count") {
		t.Errorf("%s", got)
	}
}

// failing fails after some bytes.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return 0, io.ErrShortWrite
	}
	f.left -= len(b)
	return len(b), nil
}

func TestFailedWritesOfStacksAreReported(t *testing.T) {
	var whole bytes.Buffer
	if err := export.PProf(&whole, someStacks()); err != nil {
		t.Fatal(err)
	}
	if _, err := gzip.NewReader(&whole); err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(io.Writer, *export.Stacks) error{"pprof": export.PProf, "folded": export.Folded} {
		for _, left := range []int{0, 5} {
			if write(&failing{left}, someStacks()) == nil {
				t.Errorf("%s: %d bytes of room are enough", name, left)
			}
		}
	}
}
