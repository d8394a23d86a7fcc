package recorder_test

import (
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// Every shape of function has a tier, but for one whose jump may lead anywhere, and is recorded. Each is called once a round, but for those
// that others call.
func TestEveryShapeOfARM64IsRecorded(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "state"), "1")
	list := realtest.Decode[realtest.FunctionList](t,
		realtest.MustCallreel(t, append([]string{"functions"}, append(pidFlag(p), "--json", "-f", "shape_*", "-f", "state_*")...)...).Stdout)
	r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "-f", "shape_*", "-f", "state_*")...)
	time.Sleep(time.Second)
	stop(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
	rep := reportOf(t, r.File)
	once := rep.Report.Calls("shape_adr")
	callers := map[string]int64{"shape_ret": 2, "shape_plus": -1, "state_call": -1} // -1 for many
	if len(list.Functions) != 35 || once == 0 {
		t.Errorf("%d functions, %d calls of shape_adr", len(list.Functions), once)
	}
	for _, f := range list.Functions {
		got := rep.Report.Calls(f.Name)
		switch times := callers[f.Name]; {
		case f.Name == "shape_switch":
			if f.Reason != "unresolved-jump" || got != 0 {
				t.Errorf("%s is refused for %q, and has %d calls", f.Name, f.Reason, got)
			}
		case f.Tier == "":
			t.Errorf("%s is refused: %s", f.Name, f.Reason)
		case times < 0 && got <= once || times >= 0 && (got < max(times, 1)*(once-1) || got > max(times, 1)*(once+1)):
			t.Errorf("%s has %d calls, shape_adr %d", f.Name, got, once)
		}
	}
}
