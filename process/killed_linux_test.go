package process

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mayEndWithEINTR are the calls that the kernel itself ends so when a thread is
// stopped; a tracer that is killed right then cannot put it right.
var mayEndWithEINTR = map[string]bool{"EINTR from epoll_wait": true, "EINTR from sigtimedwait": true}

func TestTargetSurvivesTheTracersDeathAtAnyInstant(t *testing.T) {
	for _, c := range []struct {
		role  string
		kills int
	}{{"inject-each", 200}, {"inject", 25}, {"stop", 25}, {"nudge", 25}} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			if testing.Short() {
				c.kills /= 10
			}
			g := startTarget(t, build(t, "selfcheck.c", "gcc"))
			sent := killOften(t, g, c.role, c.kills)
			wantWhole(t, g, sent)
		})
	}
}

// killOften starts a tracer and kills it, kills times, and sends the target
// queued signals all the while. It returns how many.
func killOften(t *testing.T, g *target, role string, kills int, more ...string) int {
	sent := 0
	for range kills {
		tracer := startRole(t, role, g.pid(), more...)
		wait := time.Duration(rand.Int64N(int64(6 * time.Millisecond)))
		for end := time.Now().Add(wait); time.Now().Before(end); time.Sleep(300 * time.Microsecond) {
			if err := unix.Kill(g.pid(), realTime); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		killRole(tracer)
		if said := tracer.stderr.String(); said != "" {
			t.Fatalf("tracer: %s", said)
		}
	}
	return sent
}

const realTime = unix.Signal(34) // glibc's SIGRTMIN: such signals queue

func TestSignalsAreNeitherLostNorDoubled(t *testing.T) {
	g := startTarget(t, build(t, "selfcheck.c", "gcc"))
	p := openTarget(t, g)
	done, counted := make(chan struct{}), make(chan int)
	go func() {
		sent := 0
		for {
			select {
			case <-done:
				counted <- sent
				return
			default:
			}
			if unix.Kill(g.pid(), realTime) == nil {
				sent++
			}
			time.Sleep(100 * time.Microsecond)
		}
	}()
	for i := range 150 {
		if i%3 == 0 {
			stop(t, p, inject)
		} else {
			stop(t, p, doNothing)
		}
	}
	close(done)
	sent := <-counted
	text := g.finish()
	if got := handledSignals(t, text); got != sent {
		t.Errorf("%d signals were handled, %d sent", got, sent)
	}
	if !strings.HasSuffix(text, "\nok\n") {
		t.Errorf("target: %s", text)
	}
	t.Logf("%d signals", sent)
}

func handledSignals(t *testing.T, text string) (n int) {
	t.Helper()
	fields := strings.Fields(text)
	if len(fields) < 4 || fields[2] != "handled" {
		t.Fatalf("target said %q", text)
	}
	counts, err := atois(fields[3:4])
	if err != nil {
		t.Fatal(err)
	}
	return counts[0]
}

// wantWhole ends a target that checks itself, and fails unless nothing was wrong in it, and it has handled all signals that were sent.
func wantWhole(t *testing.T, g *target, sent int) {
	t.Helper()
	text := g.finish()
	for line := range strings.Lines(g.stderr.String()) {
		if !mayEndWithEINTR[strings.TrimSpace(line)] {
			t.Errorf("target: %s", line)
		}
	}
	if !strings.HasSuffix(text, "\nok\n") {
		t.Errorf("target: %s", text)
	}
	if got := handledSignals(t, text); got != sent {
		t.Errorf("%d signals were handled, %d sent", got, sent)
	}
}
