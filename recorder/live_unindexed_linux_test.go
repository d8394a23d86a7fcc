package recorder_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// While the index is made the process is free already, the reel can be read, and a second Ctrl-C leaves the index out.
func TestASecondInterruptLeavesTheIndexOut(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "threads"), "steady", "4")
	r := realtest.StartRecording(t, append(pidFlag(p), "-m", "threads-*")...)
	time.Sleep(1500 * time.Millisecond) // an index of that takes a while
	r.Signal(os.Interrupt)
	eventually(t, "the process free", func() bool {
		remains, err := remainsIn(p.Pid())
		return err == nil && len(remains) == 0
	})
	eventually(t, "whole", func() bool { // what the rings held is still being written when the process is free
		rep := realtest.Decode[report](t, realtest.MustCallreel(t, "report", "--json", r.File).Stdout)
		return len(rep.Damaged) == 0 && rep.Report.Calls("counted_a") > 0
	})
	time.Sleep(1100 * time.Millisecond) // sooner it is taken for the first
	if r.Alive() {
		r.Signal(os.Interrupt)
	}
	if code := r.Wait(); code != 0 {
		t.Fatalf("code %d: %s", code, r.Stderr())
	}
	s := realtest.Decode[summary](t, strings.Join(r.Stdout(), "\n"))
	t.Logf("%d calls; %s", s.Calls, r.Stderr())
	whole := reportOf(t, r.File).Report
	if s.Calls == 0 || !s.TextVerified || len(whole.Damaged) > 0 || whole.Calls("counted_a") == 0 {
		t.Errorf("%+v, damaged %s", s, whole.Damaged)
	}
	p.Finish()
}
