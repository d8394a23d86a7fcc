package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/cmd/callreel/internal/doctor"
	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
)

func TestRecordOfACommandEndsWithItsCode(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	notExecutable := write(t, t.TempDir(), "script", []byte("#!/bin/sh\n"))
	for _, c := range []struct {
		name    string
		command []string
		want    int
	}{
		{"success", []string{"true"}, 0},
		{"failure", []string{"sh", "-c", "exit 42"}, 42},
		{"a code of ours", []string{"sh", "-c", "exit 3"}, 3},
		{"a signal", []string{"sh", "-c", "kill -9 $$"}, 137},
		{"no such command", []string{"callreel-test-no-such-command"}, 127},
		{"not executable", []string{notExecutable}, 126},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"record", "-o", filepath.Join(t.TempDir(), "cmd.reel"), "--"}, c.command...)
			if r := realtest.Callreel(t, args...); r.Code != c.want || r.Stdout != "" || r.Stderr == "" {
				t.Errorf("code %d, want %d; stdout %q, stderr %q", r.Code, c.want, r.Stdout, r.Stderr)
			}
		})
	}
}

func TestRecordLeavesTheCommandItsOwnOutputAndArguments(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	dir := t.TempDir()
	file := filepath.Join(dir, "summary.json")
	r := realtest.MustCallreel(t, "record", "-o", filepath.Join(dir, "echo.reel"), "--summary", file, "--", "echo", "-o", "--json", "-p")
	if r.Stdout != "-o --json -p\n" || r.Stderr != "" {
		t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
	}
	text, err := os.ReadFile(file)
	realtest.Must(t, err)
	s := realtest.DecodeExactly[summary](t, string(text))
	if s.Calls == 0 || !s.Ended || !s.TextVerified || s.ExitCode == nil || *s.ExitCode != 0 {
		t.Errorf("%s", text)
	}
}

func TestRecordJSONHasThePromisedKeysAndNoProgress(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "count"), "1000", "100")
	file := filepath.Join(t.TempDir(), "count.reel")
	r := realtest.MustCallreel(t, "record", "-p", strconv.Itoa(target.Pid()), "-m", "count-*", "-d", "300ms", "-o", file, "--json")
	if r.Stderr != "" {
		t.Errorf("without a terminal there is something on stderr: %q", r.Stderr)
	}
	s := realtest.DecodeExactly[summary](t, r.Stdout)
	if !s.TextVerified || s.Functions.Traced == 0 || s.Functions.Seen < s.Functions.Traced || s.File != file || s.ExitCode != nil {
		t.Errorf("%s", r.Stdout)
	}
	var keys map[string]any
	realtest.Must(t, json.Unmarshal([]byte(r.Stdout), &keys))
	for _, key := range []string{"functions", "calls", "events", "dropped", "bytes", "threads", "attach_stop_ms", "detach_stop_ms", "text_verified"} {
		if _, there := keys[key]; !there {
			t.Errorf("there is no key %q", key)
		}
	}
	functions, _ := keys["functions"].(map[string]any)
	for _, key := range []string{"seen", "traced", "compiled", "refused"} {
		if _, there := functions[key]; !there {
			t.Errorf("there is no key functions.%q", key)
		}
	}
	if r := realtest.Callreel(t, "detach", "-p", strconv.Itoa(target.Pid())); r.Code != exitDone || !strings.Contains(r.Stdout, "not being recorded") {
		t.Errorf("detach of what isn't recorded: code %d, %q", r.Code, r.Stderr)
	}
}

func TestRecordWithoutJSONPutsTheSummaryOnStdout(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "count"), "1000", "100")
	r := realtest.MustCallreel(t, "record", "-p", strconv.Itoa(target.Pid()), "-d", "100ms", "-o", filepath.Join(t.TempDir(), "count.reel"))
	if !strings.Contains(r.Stdout, "text verified: true") || r.Stderr != "" {
		t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
	}
	checkTerminalSafe(t, r.Stdout)
}

func TestProcessesThatCannotBeRecordedAreRefusedWithTheirCode(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	ended := exec.Command("true")
	realtest.Must(t, ended.Run())
	for _, c := range []struct {
		name string
		pid  int
		code int
		want string
	}{
		{"ended", ended.Process.Pid, exitFailed, "no such process"},
		{"never there", 1<<31 - 1, exitFailed, "no such process"},
		{"ourselves", os.Getpid(), exitNotPermitted, "itself"},
	} {
		for _, verb := range []string{"record", "top", "functions", "detach", "doctor"} {
			t.Run(c.name+" "+verb, func(t *testing.T) {
				t.Chdir(t.TempDir())
				a := callreel("", verb, "-p", strconv.Itoa(c.pid))
				code, said := c.code, a.stderr
				if verb == "doctor" {
					code, said = exitNotPermitted, a.stdout
				}
				if a.code != code || !strings.Contains(said, c.want) {
					t.Errorf("code %d, want %d; stdout %q, stderr %q", a.code, code, a.stdout, a.stderr)
				}
			})
		}
	}
}

func TestDoctorTriesRecordingForReal(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace)
	r := realtest.Callreel(t, "doctor", "--json")
	d := realtest.DecodeExactly[diagnosis](t, r.Stdout)
	states := map[string]doctor.State{}
	for _, c := range d.Checks {
		states[c.Name] = c.State
		if c.What == "" {
			t.Errorf("%s says nothing", c.Name)
		}
	}
	if r.Code != exitDone || !d.Works || states["writing text"] != doctor.OK || states["recording"] != doctor.OK {
		t.Errorf("code %d: %s", r.Code, r.Stdout)
	}
	r = realtest.Callreel(t, "doctor")
	if r.Code != exitDone || !strings.HasSuffix(r.Stdout, "Recording works here.\n") || r.Stderr != "" {
		t.Errorf("code %d, stdout %q, stderr %q", r.Code, r.Stdout, r.Stderr)
	}
}

func TestDoctorSaysWhetherAProcessCanBeRecorded(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	target := realtest.Start(t, realtest.Build(t, "count"), "1000", "100")
	r := realtest.Callreel(t, "doctor", "-p", strconv.Itoa(target.Pid()), "--json")
	d := realtest.DecodeExactly[diagnosis](t, r.Stdout)
	if r.Code != exitDone || !d.Works || d.PID != target.Pid() || d.Functions == nil || d.Functions.Traced == 0 {
		t.Errorf("code %d: %s", r.Code, r.Stdout)
	}
	list := realtest.DecodeExactly[promisedFunctions](t, realtest.MustCallreel(t, "functions", "-p", strconv.Itoa(target.Pid()), "--json").Stdout)
	if d.Functions != nil && len(list.Functions) != d.Functions.Seen {
		t.Errorf("doctor has seen %d functions, functions lists %d", d.Functions.Seen, len(list.Functions))
	}
	small := realtest.StartCommand(t, exec.Command(realtest.Small32(t)))
	r = realtest.Callreel(t, "doctor", "-p", strconv.Itoa(small.Pid()))
	if r.Code != exitNotPermitted || !strings.Contains(r.Stdout, process.ErrForeignArch.Error()) {
		t.Errorf("a 32-bit program: code %d, %q", r.Code, r.Stdout)
	}
}

func TestDemoShowsTheSlowRequestAndEndsWhatItStarted(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.GCC)
	dir := filepath.Join(t.TempDir(), "demo")
	r := realtest.MustCallreel(t, "demo", "-o", dir)
	for _, want := range []string{"$ cc ", "$ callreel record -p ", "text verified: true", "requests: half within", "server!hash_collide", "in one call of hash_collide"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in\n%s", want, r.Stdout)
		}
	}
	exes, err := filepath.Glob("/proc/[0-9]*/exe")
	realtest.Must(t, err)
	for _, exe := range exes {
		if path, _ := os.Readlink(exe); strings.HasPrefix(path, dir) {
			t.Errorf("%s still runs: %s", path, exe)
		}
	}
	if r := realtest.Callreel(t, "demo", "-o", dir); r.Code != exitUsage || !strings.Contains(r.Stderr, "--force") {
		t.Errorf("into the same folder: code %d, %q", r.Code, r.Stderr)
	}
}

func TestDemoWithoutACompilerSaysSo(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	a := callreel("", "demo")
	if a.code != exitNotPermitted || !strings.Contains(a.stderr, "no working C compiler") {
		t.Errorf("code %d, stdout %q, stderr %q", a.code, a.stdout, a.stderr)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
