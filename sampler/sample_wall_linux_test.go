package sampler_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/sampler"
	"github.com/callreel/callreel/unwind"
)

// tracer holds a process as a debugger does, until let go.
func tracer(t *testing.T, pid int) (letGo func()) {
	t.Helper()
	held, over, done := make(chan error), make(chan bool), make(chan error)
	go func() {
		runtime.LockOSThread() // and end the OS thread with the goroutine
		held <- unix.PtraceSeize(pid)
		<-over
		err := unix.PtraceInterrupt(pid)
		if err == nil {
			_, err = unix.Wait4(pid, nil, unix.WALL, nil)
		}
		done <- errors.Join(err, unix.PtraceDetach(pid))
	}()
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	return func() {
		over <- true
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWallGoesOnAfterADebugger(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	pid := start(t, realtest.Build(t, "shares"))
	var letGo func()
	var notices []string
	var before uint64
	o := sampler.SampleOptions{PID: pid, Wall: true, Rate: 50, Notice: func(format string, args ...any) {
		notices = append(notices, fmt.Sprintf(format, args...))
		letGo()
	}}
	p := sampleUntil(t, o, func(now sampler.Progress) bool {
		if letGo == nil && now.Samples > 0 {
			before, letGo = now.Samples, tracer(t, pid)
		}
		return len(notices) > 0 && now.Samples >= before+5
	})
	if len(notices) != 1 || !strings.Contains(notices[0], "traced") || p.Ended || p.Samples < before+5 {
		t.Errorf("%q, ended %v, %d samples, %d of them before", notices, p.Ended, p.Samples, before)
	}
}

// A stopped process reports to who stops it and to its parent, which must not be one.
func TestWallSamplesThreadsThatWait(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	pid := start(t, realtest.Build(t, "threads"), "steady", "2")
	p := sampleUntil(t, sampler.SampleOptions{PID: pid, Wall: true, Rate: 50}, samples(90))
	waits, works := countIf(p, has("target_wait_line")), countIf(p, has("thread_main"))
	if waits < 20 || works < waits || works > 3*waits || p.Threads != 3 || !p.Wall {
		t.Errorf("%d samples of one that waits, %d of two that work, %d threads", waits, works, p.Threads)
	}
}

// A stop makes epoll_wait begin its timeout anew: a server that was stopped oftener than
// its timer goes off would be stopped.
func TestWallDoesNotProlongWhatAThreadWaitsFor(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	target := startShell(t, realtest.Build(t, "stall", "-O0"), "ticker") // rbp is needed for the walk
	ticks := 0
	p := sampleUntil(t, sampler.SampleOptions{PID: realtest.Children(target.Pid())[0], Wall: true, Rate: 20}, func(now sampler.Progress) bool {
		if now.Samples < 5 {
			ticks = len(target.Stdout())
		}
		return now.Samples >= 5 && len(target.Stdout()) >= ticks+3
	})
	if got := len(target.Stdout()); got < ticks+3 {
		t.Errorf("in %v the timer went off %d times", p.Duration, got-ticks)
	}
	if n := countIf(p, has("turn")); n*2 < p.Samples {
		t.Errorf("%d of %d samples name who waits", n, p.Samples)
	}
	target.Finish()
}

// Where waits are walked once, they are counted each time.
func TestWallCountsAWaitThatGoesOn(t *testing.T) {
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	for _, flags := range [][]string{nil, {"-O0"}} {
		pid := start(t, realtest.Build(t, "stall", flags...), "reader")
		p := sampleUntil(t, sampler.SampleOptions{PID: pid, Wall: true, Rate: 50}, samples(30))
		n := countIf(p, func(s *sampler.ProfileStack, names []string) bool {
			return has("turn")(s, names) && has("main")(s, names) && s.End == unwind.Complete
		})
		if n < 29 || p.Samples-n > 1 {
			t.Errorf("%v: %d of %d samples are of the whole stack", flags, n, p.Samples)
		}
	}
}
