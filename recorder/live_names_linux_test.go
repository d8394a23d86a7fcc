package recorder_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// naming is how many threads of a crowd name themselves. Each makes a call before and one behind that, and ends: nobody could read its name
// in /proc.
const naming = 400

// startNaming starts such a crowd.
func startNaming(t *testing.T, mode, more string, build ...string) *realtest.Proc {
	t.Helper()
	p := realtest.Start(t, realtest.Build(t, "crowd", build...), mode, strconv.Itoa(naming), more)
	p.WaitLine("ready")
	return p
}

// wantNames asserts that a reel has all threads of the crowd, and that they are called what they called themselves.
func wantNames(t *testing.T, rep report, first int) {
	t.Helper()
	missing := map[string]bool{}
	for i := range naming {
		missing[fmt.Sprintf("n-%d", i)] = true
	}
	for _, th := range rep.Threads {
		if th.TID == first {
			continue
		}
		if !missing[th.Name] {
			t.Errorf("thread %d is called %q", th.TID, th.Name)
		}
		delete(missing, th.Name)
	}
	if len(missing) > 0 {
		t.Errorf("%d names of %d are missing", len(missing), naming)
	}
	if n := rep.Report.Calls("counted_call"); n != 2*naming {
		t.Errorf("%d calls, want %d", n, 2*naming)
	}
}

func TestThreadsThatEndSoonKeepTheNamesTheyGaveThemselves(t *testing.T) {
	needLive(t)
	for _, c := range []struct{ crowd, flags, build string }{
		{"pthread", "-f counted_call", ""},
		{"pthread", "-f counted_call", "-static"},
		{"pthread", "-f counted_call", "cc=musl-gcc"},
		{"prctl", "--lazy", ""},
		{"syscall", "-f counted_call --lossless --ring 4M", ""},
		{"bad", "-f counted_call --clock none", ""},
		{"prctl", "-f counted_call -f prctl -f pthread_setname_np -m crowd* -m libc*", ""},
		{"pthread fork", "-f counted_call --follow", ""},
	} {
		t.Run(strings.Join([]string{c.crowd, c.flags, c.build}, " "), func(t *testing.T) {
			if strings.Contains(c.build, "musl") {
				realtest.Need(t, realtest.Musl)
			}
			mode, more, _ := strings.Cut(c.crowd, " ")
			p := startNaming(t, mode, more, strings.Fields(c.build)...)
			r := realtest.StartRecording(t, append(pidFlag(p), strings.Fields(c.flags)...)...)
			p.Say("")
			p.WaitLine("made")
			s := stop(t, r)
			wantUntouched(t, p.Pid())
			wantNames(t, reportOf(t, r.File), p.Pid())
			if s.Dropped != 0 || s.LostExits != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// The same when the process ends at once, and in the dump of its last moments.
func TestNamesAreKnownOfAProcessThatHasEnded(t *testing.T) {
	needLive(t)
	p := startNaming(t, "main", "")
	r := realtest.StartRecording(t, append(pidFlag(p), "-f", "counted_call")...)
	p.Say("")
	p.WaitLine("called")
	p.Wait()
	r.Summary()
	if rep := reportOf(t, r.File); len(rep.Threads) != 1 || rep.Threads[0].Name != "n-main" || rep.Calls != 2 {
		t.Errorf("%+v", rep)
	}

	p = startNaming(t, "prctl", "")
	r = realtest.StartRecording(t, append(pidFlag(p), "-f", "counted_call", "--when", "counted_call > 1h", "--keep", "1h")...)
	p.Say("")
	p.WaitLine("made")
	p.Wait()
	dumps := waitDumps(t, r, 1)
	stopArmed(t, r)
	wantNames(t, reportOfDump(t, dumps[0]).report, p.Pid())
}

// Threads that are to be recorded by the names that they give themselves are, with the calls they made before, if the recorder meets them
// later.
func TestThreadsAreChosenByTheNamesTheyGaveThemselves(t *testing.T) {
	needLive(t)
	p := startNaming(t, "pthread", "")
	r := realtest.StartRecording(t, append(pidFlag(p), "-f", "counted_call", "--threads", "n-*")...)
	stopped(t, r.Proc)
	p.Say("")
	p.WaitLine("made")
	r.Signal(syscall.SIGCONT)
	stop(t, r)
	wantNames(t, reportOf(t, r.File), 0)
}

// stopped stops a process as Ctrl-Z does, and waits until it stands.
func stopped(t *testing.T, p *realtest.Proc) {
	t.Helper()
	p.Signal(syscall.SIGSTOP)
	for {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.Pid()))
		if err != nil || len(tasks) == 0 {
			t.Fatalf("%v: no threads", err)
		}
		running := 0
		for _, file := range tasks {
			if b, err := os.ReadFile(file); err == nil && !strings.Contains(string(b), ") T ") {
				running++
			}
		}
		if running == 0 {
			return
		}
	}
}

// A process that ends for one of the system calls by which names are kept is recorded without, or not at all, and doesn't end.
func TestNoNameIsKeptWhereAFilterForbidsIt(t *testing.T) {
	needLive(t)
	p := startNaming(t, "pthread", "gettid")
	r := realtest.StartRecording(t, append(pidFlag(p), "-f", "counted_call")...)
	p.Say("")
	p.WaitLine("made")
	stop(t, r)
	if n := reportOf(t, r.File).Report.Calls("counted_call"); n != 2*naming {
		t.Errorf("%d calls, want %d", n, 2*naming)
	}
	if code := p.Wait(); code != 0 {
		t.Errorf("it ended with code %d", code)
	}

	p = startNaming(t, "pthread", "PR_GET_NAME")
	res := realtest.Callreel(t, append([]string{"record", "-d", "10ms", "-o", filepath.Join(t.TempDir(), "x.reel"), "-f", "counted_call"}, pidFlag(p)...)...)
	if res.Code == 0 || !strings.Contains(res.Stderr, "seccomp") {
		t.Errorf("code %d, %s", res.Code, res.Stderr)
	}
	p.Say("")
	p.WaitLine("made")
	if code := p.Wait(); code != 0 {
		t.Errorf("it ended with code %d", code)
	}
}
