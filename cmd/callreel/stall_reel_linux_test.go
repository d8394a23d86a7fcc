package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Where an armed recorder is at work, a stall comes with the reel of it, in which the call is that kept the thread.
func TestStallComesWithTheReelOfItsLastMoments(t *testing.T) {
	t.Parallel()
	realtest.Need(t, realtest.GCC, realtest.LivePtrace)
	p := realtest.Start(t, realtest.Build(t, "stall"), "sleep")
	dir := filepath.Join(t.TempDir(), "dumps")
	r := realtest.StartCommand(t, exec.Command(realtest.CallreelPath(t), "record", "-p", pidText(p.Pid()), "-f", "kept_by", "--when", "stall:1h", "-o", dir, "--json"))
	waitProbed(t, p.Pid())
	stall := startStall(t, p.Pid(), "--over", "100ms")
	s := provoke(t, stall, func() { p.Signal(syscall.SIGUSR1) }, func(s *stallObject) bool {
		return s.State == "sleep" && hasFrame(s, "kept_by") && s.Reel != ""
	})
	endStall(t, stall)
	type dumped struct {
		Functions []struct {
			Name  string `json:"name"`
			Calls uint64 `json:"calls"`
			MaxNS int64  `json:"max_ns"`
		} `json:"functions"`
		WindowNS int64 `json:"window_ns"`
		Trigger  struct {
			Condition  string `json:"condition"`
			TID        int    `json:"tid"`
			DurationNS int64  `json:"duration_ns"`
		} `json:"trigger"`
	}
	d := realtest.Decode[dumped](t, realtest.MustCallreel(t, "report", "--json", s.Reel).Stdout)
	if d.Trigger.TID != p.Pid() || !strings.Contains(d.Trigger.Condition, "stall --over 100ms") || d.WindowNS < s.DurationNS || d.Trigger.DurationNS < s.DurationNS/2 || d.Trigger.DurationNS > 2*s.DurationNS {
		t.Errorf("%+v of %+v", d, s)
	}
	if len(d.Functions) != 1 || d.Functions[0].Name != "kept_by" || d.Functions[0].MaxNS < s.DurationNS/2 {
		t.Errorf("%+v, the stall took %d ns", d.Functions, s.DurationNS)
	}
	if filepath.Dir(s.Reel) != dir || s.NoReel != "" {
		t.Errorf("the reel is %q, %q", s.Reel, s.NoReel)
	}
	r.Signal(os.Interrupt)
	if code := r.Wait(); code != exitDone {
		t.Errorf("record: code %d, %s", code, r.Stderr())
	}
	wantUntouched(t, p.Pid())
	p.Finish()
}
