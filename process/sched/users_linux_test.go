package sched_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process/sched"
)

// needSource skips the test where a source isn't available.
func needSource(t *testing.T, o sched.Options, name string) {
	t.Helper()
	realtest.NeedThat(t, "scheduling by "+name, can(o, name))
}

// TestAnOrdinaryUserHasPerfsEvents runs itself again as somebody who may do nothing.
func TestAnOrdinaryUserHasPerfsEvents(t *testing.T) {
	if os.Getenv("CALLREEL_TEST_ROLE") == "watch" {
		watchPlainly(t)
		return
	}
	needSource(t, sched.Options{NoBPF: true}, sched.SourcePerf)
	needPerfForAll(t)
	cmd := realtest.AsStranger(t, t.Name(), "watch")
	cmd.Env = append(cmd.Env, "CALLREEL_TEST_TARGET="+forAll(t, realtest.Build(t, "sched")))
	out, err := runAs(t, cmd)
	if err != nil || !strings.Contains(out, "source perf") || !strings.Contains(out, "CAP_BPF") {
		t.Errorf("%v\n%s", err, out)
	}
}

// needPerfForAll skips where the kernel has no perf events for those without CAP_PERFMON (Debian's own level is 3).
func needPerfForAll(t *testing.T) {
	t.Helper()
	if level, _ := os.ReadFile("/proc/sys/kernel/perf_event_paranoid"); strings.TrimSpace(string(level)) > "2" {
		t.Skipf("kernel.perf_event_paranoid is %s", level)
	}
}

// TestWithoutCAPBPFRootHasPerfsEvents does the same as root with fewer rights.
func TestWithoutCAPBPFRootHasPerfsEvents(t *testing.T) {
	if os.Getenv("CALLREEL_TEST_ROLE") == "watch" {
		watchPlainly(t)
		return
	}
	realtest.Need(t, realtest.Superuser)
	needSource(t, sched.Options{NoBPF: true}, sched.SourcePerf)
	needPerfForAll(t)
	setpriv := realtest.Tool(t, realtest.Setpriv)
	cmd := exec.CommandContext(t.Context(), setpriv, "--bounding-set", "-bpf,-perfmon,-sys_admin", "--inh-caps", "-bpf,-perfmon,-sys_admin",
		os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), "CALLREEL_TEST_ROLE=watch")
	out, err := runAs(t, cmd)
	if err != nil || !strings.Contains(out, "source perf") || !strings.Contains(out, "CAP_BPF") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestInAPIDNamespaceThreadsHaveTheNumbersSeenThere runs itself again as the first process of a namespace.
func TestInAPIDNamespaceThreadsHaveTheNumbersSeenThere(t *testing.T) {
	if os.Getenv("CALLREEL_TEST_ROLE") == "watch" {
		watchPlainly(t)
		return
	}
	realtest.Need(t, realtest.Superuser)
	unshare := realtest.Tool(t, realtest.Unshare)
	for _, s := range sources {
		t.Run(s.name, func(t *testing.T) {
			needSource(t, s.opt, s.name)
			cmd := exec.CommandContext(t.Context(), unshare, "--pid", "--fork", "--mount-proc", "--kill-child",
				os.Args[0], "-test.run=^TestInAPIDNamespaceThreadsHaveTheNumbersSeenThere$", "-test.count=1")
			cmd.Env = append(os.Environ(), "CALLREEL_TEST_ROLE=watch", "CALLREEL_TEST_SOURCE="+s.name)
			out, err := runAs(t, cmd)
			if err != nil || !strings.Contains(out, "source "+s.name) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// forAll copies a program to where everybody can run it.
func forAll(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(realtest.SharedFolder(t), "target")
	if err := os.WriteFile(out, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return out
}

func runAs(t *testing.T, cmd *exec.Cmd) (string, error) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// watchPlainly is what the other does: it watches a process of its own, and says by which source.
func watchPlainly(t *testing.T) {
	path := os.Getenv("CALLREEL_TEST_TARGET")
	if path == "" {
		path = realtest.Build(t, "sched")
	}
	p := realtest.Start(t, path, "waits", "2", "40")
	o := on(sched.Options{NoBPF: os.Getenv("CALLREEL_TEST_SOURCE") == sched.SourcePerf}, p)
	w := watch(t, o, often)
	fmt.Println("source", w.Source(), w.Reasons())
	took := machineStole(t)
	p.Go()
	p.WaitLine("done")
	took = machineStole(t) - took
	got := w.end()
	got.wantOrder(t)
	tids := map[int]bool{}
	for _, s := range numbers(t, p, "wait") {
		tids[int(s[0])] = true
	}
	for tid := range tids {
		if n := got.count(tid, sched.Blocked); n < 30*9/10-int(took/time.Millisecond) { // see TestWaitsAreToldWithinTheirStamps
			t.Errorf("thread %d: blocked %d times; threads that are told: %v", tid, n, keys(got.events))
		}
	}
	if len(tids) != 2 {
		t.Errorf("%d threads", len(tids))
	}
}

func keys[V any](m map[int]V) []int {
	var out []int
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
