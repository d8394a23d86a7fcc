package sampler_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
)

const spinScript = `
function innermostSpin(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
function outerSpin() { let s = 0; for (let k = 0; k < 100; k++) s += innermostSpin(100000); return s; }
for (let s = 0, n = Number(process.argv[2]); n > 0; n--) s += outerSpin();
`

// The code that node's compiler makes is named by what it writes down of it, in either
// form, on stacks and in samples.
func TestCodeThatNodeMakesIsNamed(t *testing.T) {
	realtest.Need(t, realtest.LivePtrace, realtest.Node)
	node, err := realtest.Node.Find()
	if err != nil {
		t.Fatal(err)
	}
	// One form is written at once, the other, in large pieces, at the end at the latest.
	for _, c := range []struct{ flag, rounds string }{{"--perf-basic-prof", "1e9"}, {"--perf-prof", "400"}} {
		t.Run(c.flag, func(t *testing.T) {
			until(t, "in a sample", func() bool { return sampledNode(t, node, c.flag, c.rounds) })
		})
	}
}

// sampledNode says whether a spinning node's function is named in samples of it, and on a
// stack if it spins for long.
func sampledNode(t *testing.T, node, flag, rounds string) bool {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "spin.js")
	if err := os.WriteFile(script, []byte(spinScript), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, flag, script, rounds)
	cmd.Dir = dir                                                      // where the jitdump file goes
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it spins for ever
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // the kernel kills it with the thread that started it
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it may be killed
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
		_ = os.Remove("/tmp/perf-" + strconv.Itoa(pid) + ".map")
	}()
	named := func(name string) bool { return strings.Contains(name, "innermostSpin") }
	o := sampler.SampleOptions{PID: pid}
	if flag == "--perf-basic-prof" {
		until(t, "on a stack", func() bool {
			for _, th := range stacksOf(t, pid).Threads {
				for _, f := range th.Frames {
					if named(f.Function) {
						return true
					}
				}
			}
			return false
		})
		o.Duration = time.Second
	}
	p, err := sampler.Sample(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, l := range p.Locations {
		found = found || named(l.Name)
	}
	for _, problem := range p.Problems {
		t.Log(problem)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return found
}

// until waits for what has to come, however busy the machine is.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for start := time.Now(); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Since(start) > 2*time.Minute {
			t.Fatalf("no name %s", what)
		}
	}
}
