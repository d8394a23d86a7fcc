package recorder_test

import (
	"slices"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// A budget takes functions of a Go program that cost too much out of its text while it runs, and the program's work goes on.
func TestABudgetTakesFunctionsOutOfAGoProgram(t *testing.T) {
	t.Parallel()
	needLive(t)
	p := realtest.Start(t, goTarget(t), "steady")
	for d := 4 * time.Second; ; d *= 2 { // a busy machine takes longer to see what costs too much
		r := realtest.StartRecording(t, slices.Concat(pidFlag(p), goCounted, []string{"--budget", "0.1%"})...)
		time.Sleep(d)
		s := stop(t, r)
		wantUntouched(t, p.Pid())
		if s.Budget.FunctionsOff > 0 && s.Budget.SitesRemoved > 0 {
			break
		}
		if d > 30*time.Second {
			t.Fatalf("nothing was left out: %+v", s.Budget)
		}
	}
	p.Finish()
}
