package recorder_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// startLoads starts a program that loads so many libraries and calls each twice, beginning in its constructor.
func startLoads(t *testing.T, mode string, many int, flags ...string) *realtest.Proc {
	t.Helper()
	args := []string{mode}
	for i := range many {
		args = append(args, realtest.Build(t, "library", append([]string{"-fPIC", "-shared", "-DBEGINS", fmt.Sprintf("-DWHICH=%d", i)}, flags...)...))
	}
	return realtest.Start(t, realtest.Build(t, "loads", flags...), args...)
}

// The thread that loads a library waits until its functions are probed, so not even its constructor's calls are missing. It doesn't wait
// for ever, so on a machine that leaves the recorder no processor it has some tries; without waiting each of them would fail.
func TestNoCallOfALibraryThatIsLoadedIsMissed(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, c := range []struct {
		name, mode string
		many       int
		flags      []string
		args       []string
	}{
		{name: "one after the other", mode: "each", many: 15},
		{name: "probes on the first call", mode: "each", many: 5, args: []string{"--lazy"}},
		{name: "in a signal handler", mode: "handler", many: 5},
		{name: "by threads", mode: "threads", many: 10},
		{name: "in namespaces of their own", mode: "namespace", many: 5},
		{name: "musl", mode: "each", many: 5, flags: []string{"cc=musl-gcc"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.flags) > 0 {
				realtest.Need(t, realtest.Musl)
			}
			for tries := 5; ; tries-- {
				p := startLoads(t, c.mode, c.many, c.flags...)
				r := realtest.StartRecording(t, append(append(pidFlag(p), "-m", "library-*"), c.args...)...)
				p.Go()
				p.WaitLine("all")
				s := stop(t, r)
				wantUntouched(t, p.Pid())
				counts := p.Finish()
				calls := reportOf(t, r.File).Report.Calls("library_value")
				if calls == counts["calls"] && calls == int64(2*c.many) {
					break
				}
				if calls > counts["calls"] || tries == 1 {
					t.Fatalf("%d calls recorded, %d made: %+v", calls, counts["calls"], s.Libraries)
				}
				t.Logf("%d calls recorded, %d made: %+v", calls, counts["calls"], s.Libraries)
			}
		})
	}
}

// Nobody answers: the recorder is stopped, or dead. Libraries are loaded all the same, and found later.
func TestLoadingALibraryDoesNotDependOnTheRecorder(t *testing.T) {
	t.Parallel()
	needLive(t)
	p := startLoads(t, "step", 8)
	r := realtest.StartRecording(t, append(pidFlag(p), "-m", "library-*")...)
	step := func() {
		t.Helper()
		p.Go()
		p.WaitLine("loaded")
	}
	step()
	r.Signal(syscall.SIGSTOP)
	step()
	step()
	r.Signal(syscall.SIGCONT)
	eventually(t, "recorded again", func() bool {
		return recorded(t, r.File) > 0
	})
	step()
	r.Signal(os.Kill)
	r.Wait()
	step()
	step()
	d := realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(p)...)...)
	if !strings.Contains(d.Stdout, "text verified: true") {
		t.Errorf("detach said %q", d.Stdout)
	}
	step()
	step()
	wantUntouched(t, p.Pid())
	p.Finish()
}

// The forked children of a process have nobody to tell.
func TestChildrenThatLoadLibrariesWaitForNobody(t *testing.T) {
	t.Parallel()
	needLive(t)
	for _, args := range [][]string{{"-m", "library-*"}, {"--follow", "-m", "loads*"}} {
		p := startLoads(t, "children", 10)
		r := realtest.StartRecording(t, append(pidFlag(p), args...)...)
		p.Go()
		p.WaitLine("all")
		stop(t, r)
		wantUntouched(t, p.Pid())
		p.Finish()
	}
}
