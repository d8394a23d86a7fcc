package process

import (
	"testing"
	"time"
)

// A stop must not be what kills a thread whose filter lacks restart_syscall.
func TestWaitsUnderAFilterWithoutRestartSyscallOutliveStops(t *testing.T) {
	path := build(t, "naps.c", "gcc")
	for name, c := range map[string]struct {
		args  []string
		stops int
	}{"the wait is allowed": {nil, 5}, "the wait is forbidden since": {[]string{"forbidden"}, 1}} {
		t.Run(name, func(t *testing.T) {
			g := startTarget(t, path, c.args...)
			p := openTarget(t, g)
			for range c.stops {
				time.Sleep(10 * time.Millisecond)
				if _, err := p.Stop(t.Context(), StopOptions{}, doNothing); err != nil {
					t.Fatal(err)
				}
			}
			if text := g.finish(); text != "ok\n" {
				t.Errorf("it said %q", text)
			}
		})
	}
}
