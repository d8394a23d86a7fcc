package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
)

// foldedCounts adds up the samples of a folded file's lines that hold each of the names.
func foldedCounts(t *testing.T, path string, names ...string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(path)
	realtest.Must(t, err)
	counts := map[string]int{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		at := strings.LastIndexByte(line, ' ')
		n, err := strconv.Atoi(line[at+1:])
		if at < 0 || err != nil || n <= 0 {
			t.Fatalf("line %q", line)
		}
		for _, name := range names {
			if strings.Contains(";"+line[:at]+";", ";"+name+";") {
				counts[name] += n
			}
		}
		counts["all"] += n
	}
	return counts
}

func TestSampleOfACommandGivesItsCodeAndAProfile(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.GoTool, realtest.LivePtrace, realtest.PerfEvents)
	binary, dir := realtest.Build(t, "shares"), t.TempDir()
	profile, summary := filepath.Join(dir, "p.pb.gz"), filepath.Join(dir, "s.json")
	a := realtest.Callreel(t, "sample", "-r", "499", "-o", profile, "--summary", summary, "--", binary, "0.5")
	if a.Code != 7 || a.Stdout != "" {
		t.Fatalf("code %d, want the command's 7; stdout %q, stderr %q", a.Code, a.Stdout, a.Stderr)
	}
	text, err := os.ReadFile(summary)
	realtest.Must(t, err)
	s := realtest.DecodeExactly[sampleSummary](t, string(text))
	if s.Samples < 100 || s.Mode != "cpu" || s.Rate != 499 || s.Threads != 1 || s.OwnCPU <= 0 || s.OwnCPU < s.Sampling ||
		s.Duration < 400 || s.ExitCode == nil || *s.ExitCode != 7 || !s.Ended || s.Bytes == 0 {
		t.Errorf("%s", text)
	}
	cmd := exec.Command("go", "tool", "pprof", "-top", profile)
	out, err := cmd.Output()
	if err != nil || !bytes.Contains(out, []byte("shares_f")) || !bytes.Contains(out, []byte("Type: cpu")) {
		t.Errorf("go tool pprof: %v\n%s", err, out)
	}
	again := realtest.Callreel(t, "sample", "-o", profile, "--", binary, "0.1")
	if again.Code != exitUsage || !strings.Contains(again.Stderr, "--force") {
		t.Errorf("a file that is there: code %d, %q", again.Code, again.Stderr)
	}
	forced := realtest.Callreel(t, "sample", "--force", "--format", "folded", "-o", profile, "--", binary, "0.3")
	if counts := foldedCounts(t, profile, "shares_f", "main"); forced.Code != 7 || counts["shares_f"] == 0 || counts["main"] < counts["shares_f"] {
		t.Errorf("code %d, %v", forced.Code, counts)
	}
}

// waitUntil waits for something that a running callreel brings about.
func waitUntil(t *testing.T, p *realtest.Proc, what string, there func() bool) {
	t.Helper()
	for start := time.Now(); !there(); time.Sleep(5 * time.Millisecond) {
		if !p.Alive() || time.Since(start) > time.Minute {
			t.Fatalf("never: %s\n%s", what, p.Stderr())
		}
	}
}

// hasPerfEvents says whether a process has an event, and what it writes to, open.
func hasPerfEvents(pid int) bool {
	maps, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/maps")
	return err == nil && bytes.Contains(maps, []byte("[perf_event]"))
}

// processorTime is how long a process's main thread has run.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	p, err := process.Open(pid)
	realtest.Must(t, err)
	a, err := p.Activity(pid)
	realtest.Must(t, errors.Join(err, p.Close()))
	return a.CPU
}

func TestInterruptEndsSampleCleanly(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace, realtest.PerfEvents)
	target := realtest.Start(t, realtest.Build(t, "shares"))
	path := filepath.Join(t.TempDir(), "p.folded")
	p := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "sample", "-p", pidText(target.Pid()), "-r", "499", "--format", "folded", "-o", path, "--json"))
	waitUntil(t, p, "events are open", func() bool { return hasPerfEvents(p.Pid()) })
	began := processorTime(t, target.Pid())
	waitUntil(t, p, "the target has worked", func() bool { return processorTime(t, target.Pid()) > began+300*time.Millisecond })
	p.Signal(os.Interrupt)
	if code := p.Wait(); code != exitDone {
		t.Fatalf("code %d\n%s", code, p.Stderr())
	}
	s := realtest.DecodeExactly[sampleSummary](t, strings.Join(p.Stdout(), "\n"))
	counts := foldedCounts(t, path, "shares_f", "shares_g")
	if s.Ended || uint64(counts["all"]) != s.Samples || counts["shares_f"] < counts["shares_g"] || counts["shares_g"] == 0 {
		t.Errorf("%+v, %v", s, counts)
	}
	target.Finish()
}

func TestInterruptOfSampleReachesTheCommand(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.PerfEvents)
	path := filepath.Join(t.TempDir(), "p.folded")
	p := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "sample", "--format", "folded", "-o", path, "--", "sleep", "50"))
	waitUntil(t, p, "the command sleeps", func() bool {
		children := realtest.Children(p.Pid())
		if len(children) == 0 {
			return false
		}
		text, err := os.ReadFile("/proc/" + strconv.Itoa(children[0]) + "/syscall")
		return err == nil && strings.HasPrefix(string(text), strconv.Itoa(syscall.SYS_CLOCK_NANOSLEEP)+" ")
	})
	p.Signal(syscall.SIGTERM)
	if code := p.Wait(); code != 128+int(syscall.SIGTERM) {
		t.Errorf("code %d\n%s", code, p.Stderr())
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

// withoutEvents is a program that runs another one under a filter that forbids perf events.
const withoutEvents = `
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = { sizeof f / sizeof *f, f };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 99;
	execv(argv[1], argv + 1);
	return 98;
}
`

func TestWithoutPerfEventsSampleStopsThreadsAndSaysSo(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	dir := t.TempDir()
	wrapper, source, path := filepath.Join(dir, "without"), filepath.Join(dir, "without.c"), filepath.Join(dir, "p.folded")
	realtest.Must(t, os.WriteFile(source, []byte(withoutEvents), 0o600))
	if out, err := exec.Command("gcc", "-o", wrapper, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(wrapper, realtest.CallreelPath(t), "sample", "-r", "999", "--format", "folded", "-o", path, "--summary", dir+"/s.json",
		"--", realtest.Build(t, "shares"), "1.5")
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code == 99 {
		t.Skip("no seccomp filters here")
	} else if code != 7 {
		t.Fatalf("code %d\n%s", code, out)
	}
	if !bytes.Contains(out, []byte("perf_event_paranoid")) || !bytes.Contains(out, []byte("--wall")) {
		t.Errorf("no word about it: %s", out)
	}
	text, err := os.ReadFile(dir + "/s.json")
	realtest.Must(t, err)
	s := realtest.DecodeExactly[sampleSummary](t, string(text))
	if counts := foldedCounts(t, path, "shares_f"); s.Mode != "wall" || s.Samples < 5 || counts["shares_f"] == 0 {
		t.Errorf("%s\n%v", text, counts)
	}
}
