package recorder_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// A recordedCommand is a running `record -- CMD`, whose stdin and stdout are
// CMD's.
type recordedCommand struct {
	*realtest.Proc
	file, summary string
}

func startCommand(t testing.TB, flags []string, command ...string) *recordedCommand {
	t.Helper()
	dir := t.TempDir()
	c := &recordedCommand{file: filepath.Join(dir, "command.reel"), summary: filepath.Join(dir, "summary.json")}
	args := slices.Concat([]string{"record", "-o", c.file, "--summary", c.summary}, flags, []string{"--"}, command)
	c.Proc = realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), args...))
	return c
}

func (c *recordedCommand) result(t testing.TB) summary {
	t.Helper()
	data, err := os.ReadFile(c.summary)
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Stderr())
	}
	s := realtest.Decode[summary](t, string(data))
	if !s.TextVerified {
		t.Errorf("text not verified: %s", data)
	}
	return s
}

// A command is recorded from its first instruction to its last: every call of
// every thread.
func TestACommandIsRecordedFromItsBeginningToItsEnd(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		name  string
		build []string
		flags []string
	}{
		{name: "dynamic"},
		{name: "static", build: []string{"-static"}},
		{name: "static, not position-independent", build: []string{"-static", "-no-pie"}},
		{name: "everything in it", flags: []string{"-f", "*"}},
		{name: "with more data than a branch reaches", build: []string{"-DFAR_DATA=(200<<20)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			flags := c.flags
			if flags == nil {
				flags = []string{"-f", "counted_*"}
			}
			r := startCommand(t, append(flags, "--lossless"), realtest.Build(t, "threads", c.build...), "churn", "4")
			r.WaitLine("ready")
			time.Sleep(200 * time.Millisecond)
			made := r.Finish()
			s := r.result(t)
			if s.Dropped != 0 || s.LostExits != 0 || s.Torn != 0 || !s.Ended {
				t.Errorf("%+v", s)
			}
			rep := reportOf(t, r.file)
			for _, name := range []string{"counted_a", "counted_b", "counted_c", "counted_d"} {
				if got := rep.Report.Calls(name); got != made[name] {
					t.Errorf("%d calls of %s in the report, the program made %d", got, name, made[name])
				}
			}
			want := made["threads"]
			if c.flags != nil {
				want++ // main's thread
			}
			if int64(len(rep.Threads)) != want {
				t.Errorf("%d threads in the report, want %d", len(rep.Threads), want)
			}
		})
	}
}

// The code is the command's own, as a shell tells it; so is its output.
func TestARecordedCommandKeepsItsCodeAndItsOutput(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		command []string
		code    int
		stdout  string
	}{
		{command: []string{"sh", "-c", "echo out; exit 0"}, stdout: "out"},
		{command: []string{"sh", "-c", "exit 3"}, code: 3},
		{command: []string{"sh", "-c", "exit 255"}, code: 255},
		{command: []string{"sh", "-c", "kill -9 $$"}, code: 137},
		{command: []string{"sh", "-c", "kill -SEGV $$"}, code: 139},
		{command: []string{"sh", "-c", "exec sh -c 'echo again; exit 5'"}, code: 5, stdout: "again"},
		{command: []string{"cat", "/proc/self/comm"}, stdout: "cat"},
	} {
		t.Run(strings.Join(c.command, " "), func(t *testing.T) {
			r := startCommand(t, nil, c.command...)
			if code := r.Wait(); code != c.code {
				t.Errorf("code %d, want %d\n%s", code, c.code, r.Stderr())
			}
			if got := strings.Join(r.Stdout(), "\n"); got != c.stdout {
				t.Errorf("stdout %q, want %q", got, c.stdout)
			}
			r.result(t)
			reportOf(t, r.file)
		})
	}
	for name, want := range map[string]int{"no-such-command-anywhere": 127, os.DevNull: 126} {
		r := realtest.Callreel(t, "record", "-o", filepath.Join(t.TempDir(), "none.reel"), "--", name)
		if r.Code != want || !strings.Contains(r.Stderr, name) {
			t.Errorf("%s: code %d, want %d as a shell's; %s", name, r.Code, want, r.Stderr)
		}
	}
}

// Signals that end the recorder end the command too, and its code tells.
func TestASignalEndsTheRecordedCommandToo(t *testing.T) {
	needLive(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			r := startCommand(t, nil, realtest.Build(t, "threads"), "steady", "2")
			r.WaitLine("ready")
			eventually(t, "recording", func() bool { _, err := os.Stat(r.file); return err == nil })
			children := realtest.Children(r.Pid())
			if len(children) != 1 {
				t.Fatalf("children %v", children)
			}
			r.Signal(sig)
			if code := r.Wait(); code != 128+int(sig) && code != 0 {
				t.Errorf("code %d, want %d\n%s", code, 128+int(sig), r.Stderr())
			}
			if stateOf(children[0]) != 0 {
				t.Errorf("process %d goes on", children[0])
			}
			if s := r.result(t); s.Calls == 0 {
				t.Error("no calls")
			}
			reportOf(t, r.file)
		})
	}
}

// With -d a command is recorded for its first moments only, and goes on.
func TestACommandOutlivesItsRecording(t *testing.T) {
	needLive(t)
	r := startCommand(t, []string{"-d", "100ms"}, realtest.Build(t, "threads"), "steady", "2")
	r.WaitLine("ready")
	children := realtest.Children(r.Pid())
	if len(children) != 1 {
		t.Fatalf("children %v", children)
	}
	eventually(t, "detached", func() bool {
		remains, err := remainsIn(children[0])
		return err == nil && len(remains) == 0 && textAsFile(children[0]) == nil
	})
	if counts := r.Finish(); counts["counted_a"] == 0 {
		t.Errorf("%v", counts)
	}
	if s := r.result(t); s.Ended || s.Calls == 0 {
		t.Errorf("%+v", s)
	}
}

// Programs that check themselves, from their first instruction on.
func TestRecordedCommandsFindNothingWrong(t *testing.T) {
	needLive(t)
	for _, c := range []struct{ target, some string }{{"state", "calls"}, {"abi", "signals"}, {"cxx", "thrown"}, {"fork", "children"}} {
		t.Run(c.target, func(t *testing.T) {
			if c.target == "cxx" {
				realtest.Need(t, realtest.GXX)
			}
			r := startCommand(t, nil, realtest.Build(t, c.target))
			r.WaitLine("ready")
			time.Sleep(300 * time.Millisecond)
			if counts := r.Finish(); counts[c.some] == 0 {
				t.Errorf("%v", counts)
			}
			if s := r.result(t); s.Calls == 0 {
				t.Error("no calls")
			}
		})
	}
	t.Run("node", func(t *testing.T) {
		r := startCommand(t, nil, lookFor(t, "node"), "-e", nodeScript)
		r.WaitLine("ready")
		time.Sleep(300 * time.Millisecond)
		if counts := r.Finish(); counts["rounds"] == 0 {
			t.Errorf("%v", counts)
		}
	})
}
