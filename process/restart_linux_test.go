package process

import (
	"strings"
	"testing"
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
