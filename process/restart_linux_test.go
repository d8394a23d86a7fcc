package process

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSocketCallsWithTimeoutsGoOnAfterStops(t *testing.T) {
	g := startTarget(t, build(t, "sockets.c", "gcc"))
	p := openTarget(t, g)
	for range 20 {
		stop(t, p, inject)
	}
	text := g.finish()
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, " ok\n") {
			t.Errorf("%s", line)
		}
	}
	if n := strings.Count(text, " ok\n"); n != 9 {
		t.Errorf("%d calls ended well, want 9", n)
	}
}

// A wait doesn't notice stops, calls made for us, and functions called for us; but a signal that comes meanwhile ends it, as it would have without.
func TestWaitsEndForSignalsAndForNothingElse(t *testing.T) {
	for _, call := range []string{"epoll_wait", "epoll_pwait", "sigtimedwait", "recv", "poll"} {
		t.Run(call, func(t *testing.T) {
			const turns = 3
			g := startTarget(t, build(t, "woken.c", "gcc"), call, itoa(turns))
			p := openTarget(t, g)
			gettid := functionIn(t, p, "/libc.", "gettid")
			send := func() {
				if err := unix.Tgkill(g.pid(), g.pid(), unix.SIGUSR1); err != nil {
					t.Error(err)
				}
			}
			disturb := func(turn int, then func()) {
				waitForState(t, g.pid(), 'S')
				switch turn {
				case 0:
					stop(t, p, func(*Stopped) error { then(); return nil })
				case 1:
					stop(t, p, func(s *Stopped) error { defer then(); return inject(s) })
				case 2:
					if CallsSupported() != nil {
						stop(t, p, func(*Stopped) error { then(); return nil })
						break
					}
					if _, err := invokeOn(t, p, g.pid(), Invocation{Function: gettid, Returned: func(Returned) { then() }}); err != nil {
						t.Error(err)
					}
				}
			}
			for turn := range turns {
				for other := range turns {
					disturb(other, func() {})
				}
				disturb(turn, send)
				if got, want := g.line(), fmt.Sprintf("%d -1 EINTR", turn+1); got != want {
					t.Fatalf("turn %d: %q, want %q", turn, got, want)
				}
				if turn < turns-1 && g.line() != "ready" {
					t.Fatal("it isn't ready again")
				}
			}
			if text := g.finish(); text != "ok\n" {
				t.Errorf("target: %s", text)
			}
		})
	}
}
