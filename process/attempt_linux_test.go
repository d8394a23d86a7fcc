package process

import (
	"context"
	"errors"
	"math/rand/v2"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// As long as the first thread is in vfork, nobody is traced and the other one runs.
func TestNobodyStandsWhileAThreadCannotStop(t *testing.T) {
	t.Parallel()
	g := startTarget(t, build(t, "vforks.c", "gcc"), "700", "1")
	p := openTarget(t, g)
	waitForState(t, g.pid(), 'D')
	type outcome struct {
		calls int
		err   error
	}
	done := make(chan outcome)
	go func() {
		var o outcome
		_, o.err = p.Stop(context.Background(), StopOptions{Timeout: 30 * time.Second}, func(s *Stopped) error {
			o.calls++
			return inject(s)
		})
		done <- o
	}()
	looks := 0
	for {
		traced := 0
		for _, info := range must(p.Threads()) {
			if status, err := p.ThreadStatus(info.TID); err == nil && status.TracerPID != 0 {
				traced = info.TID
			}
		}
		if st, err := readStat(g.pid(), g.pid()); err != nil || st.state != 'D' {
			break // what was traced may have been so after that
		}
		if traced != 0 {
			t.Errorf("thread %d is traced while the first is in vfork", traced)
		}
		looks++
		time.Sleep(time.Millisecond)
	}
	if o := <-done; o.err != nil || o.calls != 1 {
		t.Errorf("%+v", o)
	}
	if looks == 0 {
		t.Error("the first thread was never seen in vfork")
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

// A thread that is hardly ever out of uninterruptible sleep needs more than one attempt.
func TestThreadThatSleepsUninterruptiblyAgainAndAgainIsStoppedInTheEnd(t *testing.T) {
	t.Parallel()
	g := startTarget(t, build(t, "vforks.c", "gcc"), "100", "15")
	p := openTarget(t, g)
	waitForState(t, g.pid(), 'D')
	calls := 0
	stop(t, p, func(s *Stopped) error {
		calls++
		return inject(s)
	})
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestPatienceIsLongerWithThreadsThatWantToRun(t *testing.T) {
	var none *patience
	if none.spent('D') {
		t.Error("no patience is spent")
	}
	long := &patience{slice: time.Hour, since: time.Now().Add(-2 * time.Hour)}
	if !long.spent('D') || long.spent('R') || long.spent('S') {
		t.Errorf("after two slices: D %v, R %v, S %v", long.spent('D'), long.spent('R'), long.spent('S'))
	}
	long.renew()
	if long.spent('D') {
		t.Error("spent right after a thread has stopped")
	}
	short := &patience{slice: time.Second, since: time.Now().Add(-time.Hour)}
	if !short.spent('R') {
		t.Error("endless")
	}
}

// A process that ends while it is being stopped is either stopped before or gone.
func TestProcessKilledWhileItIsBeingStoppedHasEnded(t *testing.T) {
	t.Parallel()
	path := build(t, "idle.c", "gcc")
	stopped, gone := 0, 0
	for i := range 150 {
		cmd := exec.Command(path, itoa(i%3))
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p, err := Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		// Not SIGINT, which what sh has put in the background ignores.
		time.AfterFunc(rand.N(2*time.Millisecond), func() { _ = unix.Kill(cmd.Process.Pid, unix.SIGTERM) })
		began := time.Now()
		_, err = p.Stop(context.Background(), StopOptions{Timeout: time.Minute}, doNothing)
		switch {
		case err == nil:
			stopped++
		case errors.Is(err, ErrNoProcess) || errors.Is(err, ErrExec):
			gone++
		default:
			t.Errorf("round %d: after %v: %v", i, time.Since(began), err)
		}
		_ = cmd.Wait()
		stdin.Close()
		if p.Alive() {
			t.Errorf("round %d: still alive", i)
		}
		p.Close()
	}
	t.Logf("stopped %d, gone %d", stopped, gone)
}

// The kernel does not report the end of a leader before that of the others.
func TestLeaderThatEndsWhileItIsBeingStoppedIsLeftOut(t *testing.T) {
	t.Parallel()
	path := build(t, "states.c", "gcc")
	for range 60 {
		cmd := exec.Command(path, "leaderless")
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p, err := Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			_, err := p.Stop(context.Background(), StopOptions{Timeout: time.Minute}, doNothing)
			if err != nil && !errors.Is(err, ErrExec) {
				t.Errorf("%v", err)
			}
			if st, err := readStat(p.Pid(), p.Pid()); err != nil || st.ended() {
				break
			}
		}
		stdin.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("target: %v", err)
		}
		p.Close()
	}
}
