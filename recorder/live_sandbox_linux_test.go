package recorder_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// sandboxed is what the summary says more of a recording that a sandbox has ended.
type sandboxed struct {
	summary
	Sandboxed bool `json:"sandboxed"`
}

// endedBySandbox waits for the end of such a recording.
func endedBySandbox(t *testing.T, r *realtest.Recording) sandboxed {
	t.Helper()
	r.Summary()
	s := realtest.Decode[sandboxed](t, strings.Join(r.Stdout(), "\n"))
	if !s.Sandboxed || !s.TextVerified {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(r.Stderr(), "seccomp") {
		t.Errorf("nothing is said: %q", r.Stderr())
	}
	return s
}

// A program that restricts its system calls while it is recorded is not killed for those of ours: recording ends, of
// itself and before. Whether the C library's functions are recorded or not makes no difference.
func TestARecordingEndsWhereItsProcessEntersASandbox(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		mode         string
		build, flags []string
	}{
		{mode: "prctl", flags: []string{"-f", "leaf", "-m", "sandbox"}},
		{mode: "syscall", flags: []string{"-f", "leaf", "-x", "syscall", "-x", "prctl"}},
		{mode: "strict", flags: []string{"-f", "*"}},
		{mode: "syscall", flags: []string{"--imports", "*:write"}},
		{mode: "prctl", build: []string{"-static"}, flags: []string{"-f", "leaf"}},
		{mode: "syscall", build: []string{"-static", "-no-pie"}, flags: []string{"-f", "*"}},
	} {
		t.Run(strings.Join(append([]string{c.mode}, append(c.build, c.flags...)...), " "), func(t *testing.T) {
			flags := c.flags
			if len(flags) == 4 && flags[2] == "-m" {
				flags[3] += "*" // its file has a longer name
			}
			p := realtest.Start(t, realtest.Build(t, "sandbox", c.build...), c.mode)
			r := realtest.StartRecording(t, append(append(pidFlag(p), "--ring", "512K"), flags...)...)
			p.Go()
			p.WaitLine("restricted")
			s := endedBySandbox(t, r)
			if err := textAsFile(p.Pid()); err != nil {
				t.Error(err)
			}
			if remains, err := remainsIn(p.Pid()); err != nil || (len(remains) > 0) != (s.Left != "") {
				t.Errorf("left %+v, %v, and said: %q", remains, err, s.Left)
			}
			rep := reportOf(t, r.File)
			for _, name := range []string{"syscall", "prctl"} {
				if traced := rep.Report.Calls(name) > 0; traced && c.flags[1] != "*" {
					t.Errorf("%s, which was not chosen, is in the report", name)
				}
			}
			p.Finish()
		})
	}
}

// A filter for all threads (SECCOMP_FILTER_FLAG_TSYNC) meets the others wherever they are: inside stubs, waiting for room.
func TestThreadsThatAreSandboxedByAnotherAreNotHarmed(t *testing.T) {
	needLive(t)
	for round := range 4 {
		t.Run(strconv.Itoa(round), func(t *testing.T) {
			flags := []string{"--ring", "512K", "-f", "leaf"}
			if round%2 == 0 {
				flags = append(flags, "--lossless")
			}
			p := realtest.Start(t, realtest.Build(t, "sandbox"), "threads")
			r := realtest.StartRecording(t, append(pidFlag(p), flags...)...)
			time.Sleep(time.Duration(round) * time.Millisecond)
			p.Go()
			if s := endedBySandbox(t, r); s.Calls == 0 || s.Torn != 0 {
				t.Errorf("%+v", s)
			}
			reportOf(t, r.File)
			p.Finish()
		})
	}
}

// Its code is the command's own, and the reel holds what was before.
func TestARecordedCommandMayEnterASandbox(t *testing.T) {
	needLive(t)
	r := startCommand(t, []string{"-f", "leaf", "--lossless"}, realtest.Build(t, "sandbox"), "prctl")
	r.WaitLine("ready")
	r.Go()
	r.WaitLine("restricted")
	r.Finish()
	s := r.result(t)
	if want := reportOf(t, r.file).Calls; s.Calls != want || s.Calls < 100000 || s.Calls > 200000 {
		t.Errorf("%d calls, %d in the report; 100,000 were made before", s.Calls, want)
	}
}

// What only looks like it, or is another process's, ends no recording.
func TestARecordingGoesOnWhereItsProcessIsNotSandboxed(t *testing.T) {
	needLive(t)
	for _, mode := range []string{"ask", "child"} {
		t.Run(mode, func(t *testing.T) {
			p := realtest.Start(t, realtest.Build(t, "sandbox"), mode)
			r := realtest.StartRecording(t, append(pidFlag(p), "-f", "leaf")...)
			p.Go()
			p.WaitLine("done")
			time.Sleep(50 * time.Millisecond)
			if !r.Alive() {
				t.Fatalf("it has ended\n%s", r.Stderr())
			}
			stop(t, r)
			if strings.Contains(r.Stderr(), "seccomp") {
				t.Error(r.Stderr())
			}
			wantUntouched(t, p.Pid())
			p.Finish()
		})
	}
}
