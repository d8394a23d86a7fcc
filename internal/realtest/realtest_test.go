package realtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// letItWork gives a target that runs until it is told to stop time for some
// rounds. The targets' own counts say whether there were any.
func letItWork() { time.Sleep(300 * time.Millisecond) }

// needTarget ends the test on systems that the targets are not for.
func needTarget(t *testing.T) {
	t.Helper()
	Need(t, LivePtrace, GCC)
}

// A target that is not traced must find nothing wrong, or it tests itself.
func TestTargetsHoldUntraced(t *testing.T) {
	needTarget(t)
	for _, c := range []struct {
		name, target string
		flags, args  []string
		some         string // the count that must not be zero
	}{
		{name: "threads that stay", target: "threads", args: []string{"steady", "4"}, some: "counted_a"},
		{name: "threads that come and go", target: "threads", args: []string{"churn", "4"}, some: "threads"},
		{name: "every register", target: "state", args: []string{"2"}, some: "calls"},
		{name: "every register, static", target: "state", flags: []string{"-static", "-no-pie"}, args: []string{"2"}, some: "calls"},
		{name: "the ABI", target: "abi", some: "signals"},
		{name: "the ABI, not optimized", target: "abi", flags: []string{"-O0"}, some: "signals"},
		{name: "the ABI with landing pads", target: "abi", flags: []string{"-O3", "-fcf-protection=full"}, some: "signals"},
		{name: "children", target: "fork", some: "children"},
		{name: "exceptions", target: "cxx", args: []string{"2"}, some: "thrown"},
		{name: "seccomp kills", target: "seccomp", args: []string{"kill"}, some: "ok"},
		{name: "seccomp strict", target: "seccomp", args: []string{"strict"}, some: "ok"},
		{name: "seccomp fails calls", target: "seccomp", args: []string{"errno"}, some: "ok"},
		{name: "sandboxes itself", target: "sandbox", args: []string{"threads"}, some: "ok"},
		{name: "seccomp allows", target: "seccomp", args: []string{"allow"}, some: "ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Start(t, Build(t, c.target, c.flags...), c.args...)
			letItWork()
			if counts := p.Finish(); counts[c.some] == 0 {
				t.Errorf("%s is zero in %v", c.some, counts)
			}
		})
	}
}

func TestTargetHoldsInPIDNamespaces(t *testing.T) {
	needTarget(t)
	Need(t, Superuser) // who may make them
	p := Start(t, Build(t, "namespaces"))
	letItWork()
	if counts := p.Finish(); counts["children"] != 2 {
		t.Errorf("%v", counts)
	}
}

func TestTargetsHoldOnMusl(t *testing.T) {
	needTarget(t)
	Need(t, Musl)
	for _, target := range []string{"threads", "abi", "fork", "state"} {
		t.Run(target, func(t *testing.T) {
			p := Start(t, Build(t, target, "cc=musl-gcc"))
			letItWork()
			for name, n := range p.Finish() {
				if n == 0 && name != "vector_width" {
					t.Errorf("%s is zero", name)
				}
			}
		})
	}
}

// Drops are counted against these numbers, so they must be what the arguments say.
func TestFixedTargetsMakeExactlyTheCallsAskedFor(t *testing.T) {
	needTarget(t)
	for _, c := range []struct {
		target string
		args   []string
		want   Counts
	}{
		{"count", []string{"1000", "10"}, Counts{"leaf": 1010, "nest": 10}},
		{
			"threads", []string{"fixed", "3", "100"},
			Counts{"counted_a": 1500, "counted_b": 1200, "counted_c": 300, "counted_d": 300, "threads": 3},
		},
	} {
		t.Run(c.target, func(t *testing.T) {
			p := Start(t, Build(t, c.target), c.args...)
			letItWork()
			if lines := p.Stdout(); len(lines) != 1 {
				t.Fatalf("it did not wait to be told to go: %q", lines)
			}
			p.Go()
			p.WaitLine("counted ")
			got := p.Finish()
			for name, n := range c.want {
				if got[name] != n {
					t.Errorf("%s = %d, want %d", name, got[name], n)
				}
			}
		})
	}
}

func TestStoppedTargetWaitsForSIGCONT(t *testing.T) {
	needTarget(t)
	p := Start(t, Build(t, "stopped"))
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(stat), ") T ") {
			break
		}
		if time.Since(start) > patience {
			t.Fatalf("not stopped: %s", stat)
		}
	}
	p.Signal(syscall.SIGCONT)
	if counts := p.Finish(); counts["leaf"] == 0 || counts["continued"] != 1 {
		t.Errorf("counts %v", counts)
	}
}

func TestTiny32IsAnI386Program(t *testing.T) {
	needTarget(t)
	Need(t, Binutils, I386)
	p := Start(t, Build(t, "tiny32"))
	if code := p.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestRedisAnswersRightUnderLoad(t *testing.T) {
	s := Redis(t)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	n, err := s.Load(ctx, 4)
	if err != nil || n == 0 {
		t.Errorf("%d replies, error %v", n, err)
	}
	out, err := s.Bench(context.Background(), "-t", "get", "-n", "1000", "-q")
	if err != nil || !strings.Contains(out, "requests per second") {
		t.Errorf("redis-benchmark: %v\n%s", err, out)
	}
	if _, err := s.Do("NOSUCH"); err == nil {
		t.Error("an error reply was not an error")
	}
}

func TestNginxAnswersRightUnderLoad(t *testing.T) {
	for _, c := range []struct {
		name    string
		workers int
		pids    int
	}{{"one process", 0, 1}, {"two workers", 2, 2}} {
		t.Run(c.name, func(t *testing.T) {
			s := Nginx(t, NginxOptions{Workers: c.workers})
			if got := s.Workers(); len(got) != c.pids {
				t.Errorf("workers %v, want %d", got, c.pids)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
			defer cancel()
			n, err := s.Load(ctx, 4)
			if err != nil || n == 0 {
				t.Errorf("%d replies, error %v", n, err)
			}
			Need(t, ApacheBench)
			out, err := s.Bench(context.Background(), "/page-1.txt", "-n", "200", "-c", "4")
			if err != nil || !strings.Contains(out, "Failed requests:        0") {
				t.Errorf("ab: %v\n%s", err, out)
			}
		})
	}
}

func TestPythonWorks(t *testing.T) {
	p := Python(t, PythonWork)
	letItWork()
	if counts := p.Finish(); counts["rounds"] == 0 {
		t.Error("no rounds")
	}
}

// What no package brings isn't held against CI's machine.
func TestWhatTheMachineLacksIsSkippedInCI(t *testing.T) {
	t.Setenv("CI", "1")
	for _, c := range []struct {
		err     error
		skipped bool
	}{{nil, false}, {ErrMachine, true}} {
		var skipped bool
		t.Run("", func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			NeedThat(t, "programs of another kind", c.err)
		})
		if skipped != c.skipped {
			t.Errorf("%v: skipped: %v", c.err, skipped)
		}
	}
}

func TestParseCounts(t *testing.T) {
	for _, c := range []struct {
		line string
		want int64
		bad  bool
	}{
		{line: "calls counted_a=12 counted_b=3 ok", want: 12},
		{line: "calls counted_a=12", bad: true},
		{line: "", bad: true},
		{line: "ok", bad: true},
		{line: "calls counted_a=x ok", bad: true},
		{line: "calls counted_a ok", bad: true},
	} {
		got, err := ParseCounts(c.line)
		if (err != nil) != c.bad || got["counted_a"] != c.want {
			t.Errorf("ParseCounts(%q) = %v, %v", c.line, got, err)
		}
	}
}

func TestExitCodeFollowsTheShell(t *testing.T) {
	for _, c := range []struct {
		script string
		want   int
	}{{"exit 0", 0}, {"exit 3", 3}, {"kill -9 $$", 137}} {
		p := StartCommand(t, exec.Command("/bin/sh", "-c", c.script))
		if got := p.Wait(); got != c.want {
			t.Errorf("%q: %d, want %d", c.script, got, c.want)
		}
	}
}
