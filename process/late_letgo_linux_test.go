package process

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A stop may be given up when threads have been told to stop and haven't yet: on a busy machine, or since its caller doesn't want it any more.
func TestAStopThatIsGivenUpGoesUnnoticed(t *testing.T) {
	for _, c := range []struct {
		name  string
		slice time.Duration
		ctx   func() (context.Context, context.CancelFunc)
	}{
		{"too late", 1, func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) }},
		{"not wanted any more", firstSlice, func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(context.Background(), rand.N(2*time.Millisecond))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := startTarget(t, build(t, "selfcheck.c", "gcc"))
			p := openTarget(t, g)
			given := 0
			for n := 0; n < 100 || given == 0 && n < 10_000; n++ {
				ctx, cancel := c.ctx()
				if ran, seized := attemptOf(t, p, ctx, c.slice); !ran && seized {
					given++
				}
				cancel()
				time.Sleep(time.Millisecond)
			}
			if given == 0 {
				t.Error("no attempt was given up after threads had been seized")
			}
			if text := g.finish(); !unnoticed(text) {
				t.Errorf("target: %s%s", text, &g.stderr)
			}
		})
	}
}

// attemptOf makes one attempt to stop p. It says whether it ran, and whether threads had been seized.
func attemptOf(t *testing.T, p *Process, ctx context.Context, slice time.Duration) (ran, seized bool) {
	t.Helper()
	s := newStopped(p, StopOptions{}, ctx)
	s.patience = &patience{slice: slice}
	_, ran, err := s.attempt(time.Now().Add(time.Minute), doNothing)
	if ran && err != nil || !ran && !slices.ContainsFunc([]error{ErrStopTimeout, context.DeadlineExceeded, ErrExec, ErrNoProcess}, func(e error) bool { return errors.Is(err, e) }) {
		t.Fatalf("ran %v: %v", ran, err)
	}
	for _, thread := range s.threads {
		if thread.ordered && !thread.ended {
			t.Errorf("thread %d was told to stop, and let go before it did", thread.TID)
		}
	}
	return ran, len(s.threads) > 0
}

// Threads that are born while a stop is given up are the tracer's as well, by the kernel.
func TestThreadsThatAreBornWhileAStopIsGivenUpGoOn(t *testing.T) {
	g := startTarget(t, build(t, "churn.c", "gcc"))
	p := openTarget(t, g)
	given := 0
	for n := 0; n < 300 || given == 0 && n < 10_000; n++ {
		if ran, seized := attemptOf(t, p, context.Background(), 1); !ran && seized {
			given++
		}
	}
	if given == 0 {
		t.Error("no attempt was given up")
	}
	if text := g.finish(); text != "ok\n" {
		t.Errorf("target: %s", text)
	}
}

// A thread that replaces the program ends all others, whether they are traced or not, and gets the leader's ID.
func TestProgramsAreReplacedWhileTheyAreBeingStopped(t *testing.T) {
	for _, c := range []struct {
		name  string
		slice time.Duration
	}{{"stopped", firstSlice}, {"given up", 1}} {
		t.Run(c.name, func(t *testing.T) {
			path := build(t, "execs.c", "gcc")
			const generations = 150
			args := slices.Repeat([]string{path, "thread", "/dev/null"}, generations)
			g := startTarget(t, path, append(args[1:], "/bin/echo", "done")...)
			p := openTarget(t, g)
			said := make(chan string)
			go func() {
				all, _ := io.ReadAll(g.lines) // to its end
				said <- string(all)
			}()
			for ran, given := 0, 0; ; {
				select {
				case text := <-said:
					if !strings.HasSuffix(text, "done\n") || strings.Count(text, "ready\n") != generations-1 {
						t.Errorf("the last that it said is %q", text[max(0, len(text)-200):])
					}
					if ran+given == 0 {
						t.Error("nothing was tried")
					}
					return
				default:
				}
				switch done, seized := attemptOf(t, p, context.Background(), c.slice); {
				case done:
					ran++
				case seized:
					given++
				}
			}
		})
	}
}
