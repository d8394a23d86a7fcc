package process

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestHundredStopsOfSixteenBusyThreadsGoUnnoticed(t *testing.T) {
	t.Parallel()
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	var longest time.Duration
	for range 100 {
		took := stop(t, p, func(s *Stopped) error {
			if n := len(s.Threads()); n != 17 {
				t.Errorf("%d threads stopped, want 17", n)
			}
			return nil
		})
		longest = max(longest, took)
		time.Sleep(3 * time.Millisecond)
	}
	t.Logf("longest stop %v", longest)
	if text := g.finish(); !unnoticed(text) {
		t.Errorf("target: %s%s", text, &g.stderr)
	}
}

func TestHundredInjectionsGoUnnoticed(t *testing.T) {
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	for range 100 {
		stop(t, p, inject)
		time.Sleep(time.Millisecond)
	}
	if text := g.finish(); !unnoticed(text) {
		t.Errorf("target: %s%s", text, &g.stderr)
	}
}

func TestStoppedProcessStaysStopped(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"), "2")
	p := openTarget(t, g)
	if err := unix.Kill(g.pid(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitForState(t, g.pid(), 'T')
	for range 20 {
		stop(t, p, func(s *Stopped) error {
			for _, thread := range s.Threads() {
				if !thread.GroupStopped() {
					t.Errorf("thread %d is not stopped by a signal", thread.TID)
				}
			}
			return inject(s)
		})
		waitForState(t, g.pid(), 'T')
	}
	if err := unix.Kill(g.pid(), unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestStopSignalsDuringStopsTakeEffect(t *testing.T) {
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	for i := range 40 {
		stop(t, p, func(s *Stopped) error {
			if i%2 == 0 {
				if err := unix.Kill(g.pid(), unix.SIGSTOP); err != nil {
					return err
				}
			}
			return inject(s)
		})
		if i%2 == 0 {
			waitForState(t, g.pid(), 'T')
			if err := unix.Kill(g.pid(), unix.SIGCONT); err != nil {
				t.Fatal(err)
			}
		}
	}
	if text := g.finish(); !strings.HasSuffix(text, "\nok\n") {
		t.Errorf("target: %s%s", text, &g.stderr)
	}
}

func TestThreadsThatComeAndGoAreAllCaught(t *testing.T) {
	g := startTarget(t, build(t, "churn.c", "gcc"))
	p := openTarget(t, g)
	for i := range 200 {
		stop(t, p, func(s *Stopped) error {
			infos, err := p.Threads()
			if err != nil {
				return err
			}
			for _, info := range infos {
				if s.Thread(info.TID) == nil && info.State != 'Z' && info.State != 'X' {
					t.Errorf("round %d: thread %d runs on in state %c", i, info.TID, info.State)
				}
			}
			if i%4 == 0 {
				return inject(s)
			}
			return nil
		})
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestProcessWhoseLeaderHasEndedIsStopped(t *testing.T) {
	g := startTarget(t, build(t, "states.c", "gcc"), "leaderless")
	p := openTarget(t, g)
	stop(t, p, func(s *Stopped) error {
		if n := len(s.Threads()); n != 1 {
			t.Errorf("%d threads", n)
		}
		return inject(s)
	})
	if !p.Alive() {
		t.Error("not alive")
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestThreadThatCannotStopIsNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	g := startTarget(t, build(t, "states.c", "gcc"), "vfork")
	p := openTarget(t, g)
	waitForState(t, g.pid(), 'D')
	_, err := p.Stop(context.Background(), StopOptions{Timeout: 50 * time.Millisecond}, func(*Stopped) error {
		t.Error("called")
		return nil
	})
	var timeout *StopTimeoutError
	call := "vfork"
	if runtime.GOARCH == "arm64" {
		call = "clone" // which it has instead
	}
	if !errors.Is(err, ErrStopTimeout) || !errors.As(err, &timeout) || timeout.TID != g.pid() || syscallName(uint64(timeout.Syscall)) != call {
		t.Errorf("%v", err)
	}
	status, statusErr := p.Status()
	if statusErr != nil || status.TracerPID != 0 {
		t.Errorf("traced by %d after that, %v", status.TracerPID, statusErr)
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestAllIsLetGoWhenTheFunctionFails(t *testing.T) {
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	failure := errors.New("no")
	if _, err := p.Stop(context.Background(), StopOptions{}, func(*Stopped) error { return failure }); err != failure {
		t.Errorf("%v", err)
	}
	func() {
		defer func() {
			if got := recover(); got != "boom" {
				t.Errorf("recovered %v", got)
			}
		}()
		_, _ = p.Stop(context.Background(), StopOptions{}, func(*Stopped) error { panic("boom") })
	}()
	ended := make(chan bool)
	go func() {
		defer close(ended)
		_, _ = p.Stop(context.Background(), StopOptions{}, func(*Stopped) error {
			runtime.Goexit()
			return nil
		})
		t.Error("Goexit was swallowed")
	}()
	<-ended
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Stop(ctx, StopOptions{}, doNothing); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, info := range must(p.Threads()) {
		if status, err := p.ThreadStatus(info.TID); err != nil || status.TracerPID != 0 {
			t.Errorf("thread %d is traced by %d, %v", info.TID, status.TracerPID, err)
		}
	}
	if text := g.finish(); !strings.HasSuffix(text, "\nok\n") {
		t.Errorf("target: %s", text)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestTargetKilledWhileStoppedIsReported(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"), "3")
	p := openTarget(t, g)
	_, err := p.Stop(context.Background(), StopOptions{}, func(s *Stopped) error {
		if err := g.cmd.Process.Kill(); err != nil {
			return err
		}
		_, err := s.Syscall(unix.SYS_GETPID)
		return err
	})
	if err == nil {
		t.Error("a system call in a killed process succeeded")
	}
	if err := g.cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("our own wait for it: %v", err)
	}
	g.ended = true
}

func TestStepAndNudgeMoveOneThread(t *testing.T) {
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	stepped, nudged := 0, 0
	for range 30 {
		stop(t, p, func(s *Stopped) error {
			for _, thread := range s.Threads() {
				regs, err := thread.Regs()
				if err != nil {
					return err
				}
				if _, in, err := thread.InSyscall(); err != nil {
					return err
				} else if in {
					continue
				}
				left := func(now *Regs) bool { return now.PC()-regs.PC() > 64 }
				steps := 0
				if _, err := thread.Step(10, func(now *Regs) bool {
					if *now != *regs {
						steps++
					}
					return false
				}); err != nil && !errors.Is(err, errStepSyscall) {
					return err
				}
				if steps > 0 {
					stepped++
				}
				if ok, err := thread.Nudge(20, left); err != nil {
					return err
				} else if ok {
					nudged++
				}
			}
			return nil
		})
		time.Sleep(5 * time.Millisecond)
	}
	if stepped == 0 || nudged == 0 {
		t.Errorf("%d threads stepped, %d nudged", stepped, nudged)
	}
	if text := g.finish(); !unnoticed(text) {
		t.Errorf("target: %s%s", text, &g.stderr)
	}
}
