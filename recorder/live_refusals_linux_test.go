package recorder_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/process"
)

// refuse runs `record -p pid` with args and asserts the exit code, the words of
// the message, that there is no reel, and that the message is one of a program
// for people.
func refuse(t *testing.T, pid, code int, words []string, args ...string) realtest.Result {
	t.Helper()
	file := filepath.Join(t.TempDir(), "refused.reel")
	args = append([]string{"record", "-d", "100ms", "-o", file, "-p", strconv.Itoa(pid)}, args...)
	r := realtest.Callreel(t, args...)
	if r.Code != code {
		t.Errorf("code %d, want %d\n%s%s", r.Code, code, r.Stdout, r.Stderr)
	}
	for _, word := range words {
		if !strings.Contains(r.Stderr, word) {
			t.Errorf("the message has no %q: %s", word, r.Stderr)
		}
	}
	if !strings.HasPrefix(r.Stderr, "callreel") || strings.Contains(r.Stderr, "goroutine ") {
		t.Errorf("message: %s", r.Stderr)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a refused recording left a reel: %v", err)
	}
	return r
}

func TestASecondRecorderIsRefused(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	r := realtest.StartRecording(t, pidFlag(p)...)
	refuse(t, p.Pid(), 3, []string{strconv.Itoa(p.Pid()), "already being recorded", strconv.Itoa(r.Pid())})
	d := realtest.Callreel(t, append([]string{"detach"}, pidFlag(p)...)...)
	if d.Code != 3 || !strings.Contains(d.Stderr, "already being recorded") {
		t.Errorf("detach while it is recorded: code %d, %s", d.Code, d.Stderr)
	}
	wantProbed(t, p.Pid())
	if s := stop(t, r); s.Calls == 0 {
		t.Error("the first recorder recorded nothing")
	}
	wantUntouched(t, p.Pid())
	cycle(t, p.Pid())
	p.Finish()
}

func TestAReelThatExistsIsNotReplaced(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	file := filepath.Join(t.TempDir(), "precious.reel")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	same := func() {
		t.Helper()
		if data, err := os.ReadFile(file); err != nil || string(data) != "precious" {
			t.Errorf("the file is now %.20q, %v", data, err)
		}
	}
	r := realtest.Callreel(t, "record", "-d", "50ms", "-o", file, "-p", strconv.Itoa(p.Pid()))
	if r.Code != 2 || !strings.Contains(r.Stderr, "--force") || !strings.Contains(r.Stderr, file) {
		t.Errorf("code %d, %s", r.Code, r.Stderr)
	}
	same()
	wantUntouched(t, p.Pid())
	// Neither by a recording with --force that is refused.
	r = realtest.Callreel(t, "record", "--force", "-d", "50ms", "-o", file, "-p", strconv.Itoa(p.Pid()), "-f", "no_such_function")
	if r.Code != 2 {
		t.Errorf("code %d, %s", r.Code, r.Stderr)
	}
	same()
	realtest.MustCallreel(t, "record", "--force", "-d", "50ms", "-o", file, "-p", strconv.Itoa(p.Pid()))
	if rep := reportOf(t, file); rep.Calls == 0 {
		t.Error("--force: no calls")
	}
	p.Finish()
}

func TestAReelThatCannotBeMadeIsRefusedBeforeTheTargetIsTouched(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	file := filepath.Join(t.TempDir(), "no", "such", "folder.reel")
	r := realtest.Callreel(t, "record", "-d", "50ms", "-o", file, "-p", strconv.Itoa(p.Pid()))
	if r.Code == 0 || !strings.Contains(r.Stderr, file) {
		t.Errorf("code %d, %s", r.Code, r.Stderr)
	}
	wantUntouched(t, p.Pid())
	p.Finish()
}

func TestAGlobThatMatchesNothingNamesWhatIsNear(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	for _, c := range []struct{ flag, glob, near string }{
		{"-f", "countd_a", "counted_a"},
		{"-f", "Counted_B", "counted_b"},
		{"-x", "counted_cc", "counted_c"},
		{"-m", "libc.so", "libc.so.6"},
	} {
		r := refuse(t, p.Pid(), 2, []string{c.flag, c.glob, c.near}, c.flag, c.glob)
		if strings.Count(r.Stderr, "\n") > 3 {
			t.Errorf("a long message: %s", r.Stderr)
		}
		list := realtest.Callreel(t, "functions", "-p", strconv.Itoa(p.Pid()), c.flag, c.glob)
		if list.Code != 2 || !strings.Contains(list.Stderr, c.near) {
			t.Errorf("functions %s %s: code %d, %s", c.flag, c.glob, list.Code, list.Stderr)
		}
	}
	p.Finish()
}

func TestWrongUsageEndsWithCode2(t *testing.T) {
	needLive(t)
	for _, args := range [][]string{
		{"record"},
		{"record", "-p", "1", "--", "true"},
		{"record", "-p", "1", "--clock", "sundial"},
		{"record", "-p", "1", "--ring", "many"},
		{"record", "-p", "1", "-d", "soon"},
		{"record", "-p", "1", "--nonsense"},
		{"record", "-p", "one"},
		{"detach"},
		{"report"},
		{"nonsense"},
	} {
		if r := realtest.Callreel(t, args...); r.Code != 2 || r.Stderr == "" {
			t.Errorf("callreel %q: code %d, %q", args, r.Code, r.Stderr)
		}
	}
}

func TestAProcessThatIsNotThereIsNamed(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "count"), "1", "1")
	pid := p.Pid()
	p.Go()
	p.Finish() // it has been reaped, and its number will not come back soon
	refuse(t, pid, 1, []string{strconv.Itoa(pid), "no such process"})
	for _, verb := range []string{"detach", "functions"} {
		r := realtest.Callreel(t, verb, "-p", strconv.Itoa(pid))
		if r.Code != 1 || !strings.Contains(r.Stderr, "no such process") {
			t.Errorf("%s: code %d, %s", verb, r.Code, r.Stderr)
		}
	}
}

func TestDetachingWhatIsNotRecordedSaysSo(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "1")
	r := realtest.Callreel(t, append([]string{"detach"}, pidFlag(p)...)...)
	if r.Code != 0 || !strings.Contains(r.Stdout, "not being recorded") || r.Stderr != "" {
		t.Errorf("code %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	r = realtest.Callreel(t, append([]string{"detach", "--json"}, pidFlag(p)...)...)
	if d := realtest.Decode[struct{ Removed *int }](t, r.Stdout); r.Code != 0 || d.Removed == nil || *d.Removed != 0 {
		t.Errorf("code %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}
	p.Finish()
}

// Under seccomp, what would kill or fail is not tried; what is allowed works.
func TestSeccompIsRespected(t *testing.T) {
	needLive(t)
	for _, mode := range []string{"strict", "kill", "errno", "allow"} {
		t.Run(mode, func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "seccomp"), mode)
			if mode == "allow" {
				r := realtest.StartRecording(t, append(pidFlag(p), "-f", "leaf", "--lossless")...)
				for range 20 {
					p.Go() // each line is 1,000 calls for each of its bytes
				}
				eventually(t, "asleep", func() bool { return stateOf(p.Pid()) == 'S' })
				if s := stop(t, r); s.Calls == 0 || s.Dropped != 0 {
					t.Errorf("%+v", s)
				}
			} else {
				refuse(t, p.Pid(), 3, []string{"seccomp"})
			}
			wantUntouched(t, p.Pid())
			p.Finish()
		})
	}
}

// Only one tracer can hold a process. The message names it.
func TestAnotherTracerIsNamed(t *testing.T) {
	needLive(t, realtest.GDB)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "2")
	gdb := exec.Command("gdb", "-q", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", strconv.Itoa(p.Pid()),
		"-ex", "shell echo ready; read line")
	stdin, err := gdb.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := gdb.Start(); err != nil {
		t.Fatal(err)
	}
	traced := func() bool { return statusField(t, p.Pid(), "TracerPid") != "0" }
	eventually(t, "traced", traced)
	refuse(t, p.Pid(), 3, []string{"already traced", "gdb"})
	// The shell reads to the end of its input, then gdb lets go.
	if err := errors.Join(stdin.Close(), gdb.Wait()); err != nil {
		t.Error(err)
	}
	eventually(t, "let go", func() bool { return !traced() })
	wantUntouched(t, p.Pid())
	cycle(t, p.Pid())
	p.Finish()
}

func TestA32BitProgramIsRefused(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Small32(t))
	refuse(t, p.Pid(), 3, []string{process.ErrForeignArch.Error()})
	if !p.Alive() {
		t.Error("it has ended")
	}
}

func TestCallreelDoesNotRecordKernelThreads(t *testing.T) {
	needLive(t)
	// kthreadd, where the process IDs of the machine are to be seen.
	if name, err := os.ReadFile("/proc/2/comm"); err != nil || strings.TrimSpace(string(name)) != "kthreadd" {
		t.Skip("this machine lacks a view of kernel threads (a container's PID namespace)")
	}
	refuse(t, 2, 3, []string{"kernel thread"})
}
