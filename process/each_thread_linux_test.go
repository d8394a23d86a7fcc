package process

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// everyThread stops each thread once and returns the IDs of those that were stopped.
func everyThread(t *testing.T, p *Process, opts StopOptions) []int {
	t.Helper()
	infos, err := p.Threads()
	if err != nil {
		t.Fatal(err)
	}
	var tids, stopped []int
	for _, info := range infos {
		tids = append(tids, info.TID)
	}
	err = p.EachThread(context.Background(), opts, tids, func(th *Thread, err error) error {
		if err != nil {
			return nil
		}
		regs, err := th.Regs()
		if err != nil {
			return err
		}
		if got := p.ReadUpTo(make([]byte, 8), regs.SP()); got != 8 {
			t.Errorf("thread %d: read %d bytes of its stack", th.TID, got)
		}
		stopped = append(stopped, th.TID)
		return nil
	}, func(tid int, took time.Duration) {
		if slices.Contains(stopped, tid) && took <= 0 {
			t.Errorf("thread %d was stopped for %v", tid, took)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return stopped
}

func TestHundredRoundsOverSixteenThreadsGoUnnoticed(t *testing.T) {
	t.Parallel()
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	for range 100 {
		if stopped := everyThread(t, p, StopOptions{Timeout: 10 * time.Second}); len(stopped) != 17 {
			t.Errorf("%d threads were stopped, want 17", len(stopped))
		}
		time.Sleep(time.Millisecond)
	}
	if text := g.finish(); !unnoticed(text) {
		t.Errorf("target: %s%s", text, &g.stderr)
	}
}

func TestRoundsLeaveAStoppedProcessStopped(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"), "2")
	p := openTarget(t, g)
	if err := unix.Kill(g.pid(), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitForState(t, g.pid(), 'T')
	for range 20 {
		everyThread(t, p, StopOptions{Timeout: 10 * time.Second})
	}
	waitForState(t, g.pid(), 'T')
	if err := unix.Kill(g.pid(), unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	g.finish()
}

func TestThreadThatCannotStopIsPassedOverAndToldOf(t *testing.T) {
	t.Parallel()
	g := startTarget(t, build(t, "states.c", "gcc"), "vfork")
	p := openTarget(t, g)
	waitForState(t, g.pid(), 'D')
	var got error
	err := p.EachThread(context.Background(), StopOptions{Timeout: 50 * time.Millisecond}, []int{g.pid()}, func(_ *Thread, err error) error {
		got = err
		return nil
	}, nil)
	if err != nil || !errors.Is(got, ErrStopTimeout) {
		t.Errorf("%v, %v", err, got)
	}
	w, err := p.WaitingAt(g.pid())
	if err != nil || w.PC == 0 || w.SP == 0 || !w.InSyscall {
		t.Errorf("%+v, %v", w, err)
	}
	status, statusErr := p.Status()
	if statusErr != nil || status.TracerPID != 0 {
		t.Errorf("traced by %d after that, %v", status.TracerPID, statusErr)
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

func TestErrorsEndARoundAndLetGo(t *testing.T) {
	g := startTarget(t, build(t, "idle.c", "gcc"), "2")
	p := openTarget(t, g)
	mine := errors.New("mine")
	err := p.EachThread(context.Background(), StopOptions{}, []int{g.pid()}, func(*Thread, error) error { return mine }, nil)
	if !errors.Is(err, mine) {
		t.Errorf("%v", err)
	}
	var told error
	const none = 1 << 22 // no kernel has IDs as high
	err = p.EachThread(context.Background(), StopOptions{}, []int{none}, func(_ *Thread, err error) error {
		told = err
		return nil
	}, nil)
	if err != nil || !errors.Is(told, ErrReleased) {
		t.Errorf("%v, %v", err, told)
	}
	if status, err := p.Status(); err != nil || status.TracerPID != 0 {
		t.Errorf("traced by %d after that, %v", status.TracerPID, err)
	}
	g.finish()
}

func TestWaitingThreadsLineIsRead(t *testing.T) {
	for text, want := range map[string]Waiting{
		"0 0x1 0x2 0x3 0x4 0x5 0x6 0x7ffd0 0x7f01\n": {PC: 0x7f01, SP: 0x7ffd0, InSyscall: true, Args: [6]uint64{1, 2, 3, 4, 5, 6}},
		"-1 0x7ffd0 0x7f01\n":                        {PC: 0x7f01, SP: 0x7ffd0},
	} {
		if got, err := parseWaiting(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "running\n", "0 0x1\n", "-1 x y\n", "0 1 2 3 4 5 6 7 z"} {
		if got, err := parseWaiting(text); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
