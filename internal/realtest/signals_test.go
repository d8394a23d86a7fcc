package realtest

import (
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

func TestDefaultSignalsReachProgramsThoughTheyAreIgnoredHere(t *testing.T) {
	Need(t, LivePtrace) // not for the tracing: sh is of another kind elsewhere
	const kill = `kill -HUP $$; echo lives`
	run := func() string {
		out, _ := exec.Command("sh", "-c", kill).CombinedOutput() // the signal's code is what is wanted
		return string(out)
	}
	was := signal.Ignored(syscall.SIGHUP)
	signal.Ignore(syscall.SIGHUP)
	defer func() {
		if !was {
			signal.Reset(syscall.SIGHUP)
		}
	}()
	if out := run(); !strings.Contains(out, "lives") {
		t.Errorf("a program doesn't inherit what is ignored: %q", out)
	}
	t.Run("default", func(t *testing.T) {
		DefaultSignals(t, syscall.SIGHUP)
		if out := run(); strings.Contains(out, "lives") {
			t.Errorf("SIGHUP is still ignored: %q", out)
		}
	})
}
