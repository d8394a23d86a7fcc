package process

import (
	"strings"
	"testing"
	"time"
)

func TestHundredStopsOfSixteenBusyThreadsGoUnnoticed(t *testing.T) {
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
	if text := g.finish(); !strings.HasPrefix(text, "eintr 0 handled 0 alarms 1\nok\n") {
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
	if text := g.finish(); !strings.HasPrefix(text, "eintr 0 handled 0 alarms 1\nok\n") {
		t.Errorf("target: %s%s", text, &g.stderr)
	}
}
