package process

import (
	"strings"
	"testing"
)

func TestSoak(t *testing.T) {
	for _, role := range []string{"inject-each", "inject", "nudge", "stop"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			g := startTarget(t, build(t, "selfcheck.c", "gcc"))
			sent := killOften(t, g, role, 1500)
			text := g.finish()
			t.Log(text, g.stderr.String())
			if !strings.HasSuffix(text, "\nok\n") || handledSignals(t, text) != sent {
				t.Errorf("sent %d: %s", sent, text)
			}
		})
	}
	t.Run("musl", func(t *testing.T) {
		t.Parallel()
		g := startTarget(t, build(t, "idle.c", "musl-gcc", "-static"), "4")
		for range 300 {
			tracer := startRole(t, "inject-each", g.pid())
			killRole(tracer)
		}
		t.Log(g.finish())
	})
}
