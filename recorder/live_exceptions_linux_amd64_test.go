package recorder_test

import (
	"strconv"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// Calls that are left by an exception, by one thrown again, by one of another
// language, by forced unwinding and by longjmp are each recorded once, and their
// ends are told from those of calls that return. It is so with the run-time
// library's own functions recorded and without, and whenever probes are made.
func TestCallsThatDoNotReturnAreRecordedExactly(t *testing.T) {
	needLive(t, realtest.GXX)
	const times = 300
	left := map[string]int64{ // calls that did not return, for each time
		"left_by_throw": 2, "thrown_through": 1, "caught_in": 0, "rethrown_from": 1,
		"left_by_foreign": 1, "foreign_caught_in": 0, "left_by_force": 1, "force_passed_on": 1,
		"left_by_longjmp": 1, "longjmp_came_to": 0, "returns": 0,
	}
	target := realtest.Build(t, "throws")
	for _, mode := range [][]string{
		{"--eager", "-m", "throws*"},
		{"--lazy", "-m", "throws*"},
		{"--eager"},
		{"--lazy"},
		{"--lazy", "-m", "libstdc++*", "-m", "libgcc_s*", "-m", "throws*"},
	} {
		p := realtest.Start(t, target, strconv.Itoa(times))
		r := realtest.StartRecording(t, append(append(pidFlag(p), "--lossless"), mode...)...)
		wantProbed(t, p.Pid())
		p.Go()
		p.WaitLine("counted")
		s := stop(t, r)
		wantUntouched(t, p.Pid())
		p.Finish()
		if s.Dropped != 0 || s.Torn != 0 {
			t.Errorf("%v: %d calls dropped, %d events torn", mode, s.Dropped, s.Torn)
		}
		rep, ends := reportOf(t, r.File), unfinishedOf(t, r.File)
		if len(mode) > 1 && rep.Unmatched != 0 { // or those of calls from before, such as the read of the line
			t.Errorf("%v: %d exits of no call", mode, rep.Unmatched)
		}
		for name, n := range left {
			calls := max(1, n) * times
			if got := rep.Report.Calls(name); got != calls {
				t.Errorf("%v: %d calls of %s, the program made %d", mode, got, name, calls)
			}
			if got := ends.of(name); got != n*times {
				t.Errorf("%v: %d calls of %s had no end of their own, want %d", mode, got, name, n*times)
			}
		}
	}
}

// Recorders come and go a hundred times while exceptions are thrown all the
// time, through functions that are recorded and by such.
func TestRecordersDetachWhileExceptionsAreThrown(t *testing.T) {
	needLive(t, realtest.GXX)
	for _, mode := range []string{"--eager", "--lazy"} {
		p := realtest.Start(t, realtest.Build(t, "cxx"), "3")
		if cycles(t, 50, p.Pid(), "", mode, "-m", "cxx*", "-m", "libstdc++*", "-m", "libgcc_s*") == 0 {
			t.Errorf("%s: no call recorded", mode)
		}
		if counts := p.Finish(); counts["thrown"] == 0 || counts["thrown"] != counts["caught"] {
			t.Errorf("%s: %v", mode, counts)
		}
	}
}

// And while threads are cancelled.
func TestRecordersDetachWhileThreadsAreCancelled(t *testing.T) {
	needLive(t, realtest.GXX)
	for _, mode := range []string{"--eager", "--lazy"} {
		p := realtest.Start(t, realtest.Build(t, "cancel"))
		if cycles(t, 15, p.Pid(), "", mode) == 0 {
			t.Errorf("%s: no call recorded", mode)
		}
		if counts := p.Finish(); counts["cancelled"] == 0 {
			t.Errorf("%s: %v", mode, counts)
		}
	}
}
