package recorder_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
)

// Calls that are left by an exception, by one thrown again, by one of another
// language, by forced unwinding and by longjmp are each recorded once, and their
// ends are told from those of calls that return. It is so with the run-time
// library's own functions recorded and without, and whenever probes are made.
func TestCallsThatDoNotReturnAreRecordedExactly(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.GXX)
	left := map[string]int64{ // calls that did not return, for each time
		"left_by_throw": 3, "thrown_through": 1, "caught_in": 0, "rethrown_from": 1,
		"left_by_foreign": 1, "foreign_caught_in": 0, "left_for_future": 1, "future_asked_in": 0,
		"left_by_force": 1, "force_passed_on": 1, "left_by_cancel": 1, "cancel_passed_on": 1,
		"left_by_longjmp": 1, "longjmp_came_to": 0, "returns": 0,
	}
	target := realtest.Build(t, "throws")
	for _, c := range []struct {
		times, threads int64
		flags          []string
	}{
		{300, 1, []string{"--eager", "-m", "throws*", "-x", "target_wait_line"}},
		{300, 1, []string{"--lazy", "-m", "throws*", "-x", "target_wait_line"}},
		{60, 8, []string{"--eager"}},
		{60, 8, []string{"--lazy"}},
		{60, 8, []string{"--lazy", "-m", "libstdc++*", "-m", "libgcc_s*", "-m", "throws*", "-x", "target_wait_line"}},
	} {
		s, file := recordCounted(t, target, []string{strconv.FormatInt(c.times, 10), strconv.FormatInt(c.threads, 10)}, c.flags)
		if s.Dropped != 0 || s.Torn != 0 {
			t.Errorf("%v: %d calls dropped, %d events torn", c.flags, s.Dropped, s.Torn)
		}
		rep := reportOf(t, file)
		if len(c.flags) > 1 && rep.Unmatched != 0 { // or those of calls from before, such as the read of the line (a function of its own on arm64)
			t.Errorf("%v: %d exits of no call", c.flags, rep.Unmatched)
		}
		for name, n := range left {
			n *= c.times * c.threads
			calls := max(n, c.times*c.threads)
			if got := rep.Report.Calls(name); got != calls {
				t.Errorf("%v: %d calls of %s, the program made %d", c.flags, got, name, calls)
			}
			if got := rep.ends.of(name); got != n {
				t.Errorf("%v: %d calls of %s had no end of their own, want %d", c.flags, got, name, n)
			}
		}
	}
}

// With the C++ library recorded too, a call that an exception leaves ends where that is caught, and exports mark it.
func TestCallsEndWhereTheirExceptionIsCaught(t *testing.T) {
	needLive(t, realtest.GXX)
	var flags []string
	if runtime.GOARCH == "arm64" {
		flags = []string{"-mno-outline-atomics"} // or destructors call a function to count, and that ends the calls below
	}
	p := realtest.Start(t, realtest.Build(t, "throws", flags...), "1", "1")
	r := realtest.StartRecording(t, append(pidFlag(p), "--lossless", "--eager", "-m", "throws*", "-m", "libstdc++*")...)
	p.Go()
	p.WaitLine("counted")
	stop(t, r)
	p.Finish()
	type event struct {
		Ph, Name string
		TID      int
		Args     struct{ End string }
	}
	trace := realtest.Decode[struct{ TraceEvents []event }](t, realtest.MustCallreel(t, "export", r.File, "--format", "chrome", "-o", "-").Stdout)
	left := 0
	for i, e := range trace.TraceEvents {
		switch e.Name {
		case "left_by_throw", "thrown_through", "rethrown_from", "left_by_foreign", "left_for_future":
		default:
			continue
		}
		if e.Ph != "E" {
			continue
		}
		left++
		if e.Args.End != "implicit" {
			t.Errorf("%s ended, marked %q", e.Name, e.Args.End)
		}
		for _, next := range trace.TraceEvents[i+1:] {
			if next.Ph == "B" && next.TID == e.TID {
				if next.Name != "__cxa_begin_catch" {
					t.Errorf("behind the end of %s is a call of %s", e.Name, next.Name)
				}
				break
			}
		}
	}
	if left != 7 {
		t.Errorf("%d calls were left by an exception, want 7", left)
	}
}

// An exception out of a destructor while another one unwinds ends in the terminate handler, recorded or not.
func TestTheTerminateHandlerIsCalledAsWithoutARecorder(t *testing.T) {
	needLive(t, realtest.GXX)
	target := realtest.Build(t, "throws")
	for _, mode := range []string{"--eager", "--lazy"} {
		file := filepath.Join(t.TempDir(), "terminated.reel")
		got := realtest.Callreel(t, "record", mode, "--lossless", "-o", file, "--", target, "terminate")
		if got.Code != 3 || got.Stdout != "terminated\n" {
			t.Errorf("%s: code %d, stdout %q\n%s", mode, got.Code, got.Stdout, got.Stderr)
		}
		rep := reportOf(t, file)
		for name, want := range map[string][2]int64{"left_by_throw": {2, 2}, "terminate_handler": {1, 1}, "left_to_terminate": {1, 1}} {
			if calls, left := rep.Report.Calls(name), rep.ends.of(name); calls != want[0] || left != want[1] {
				t.Errorf("%s: %d calls of %s, %d without an end; want %v", mode, calls, name, left, want)
			}
		}
	}
}

// Recorders come, go and are killed while eight threads throw all the time, through functions that are recorded and by such.
// CALLREEL_CYCLES says how often.
func TestRecordersDetachWhileExceptionsAreThrown(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.GXX)
	for _, mode := range []string{"--eager", "--lazy"} {
		p := realtest.Start(t, realtest.Build(t, "cxx"), "8")
		var calls int64
		for range realtest.Repeats(t, 1) {
			calls += cycles(t, 2, p.Pid(), "", mode, "-m", "cxx*", "-m", "libstdc++*", "-m", "libgcc_s*")
			calls += cycles(t, 1, p.Pid(), "", mode)
			r := realtest.StartRecording(t, append(pidFlag(p), mode)...)
			r.Signal(os.Kill) // the next recorder removes what is left
			r.Wait()
		}
		cycle(t, p.Pid(), mode)
		if counts := p.Finish(); calls == 0 || counts["thrown"] == 0 || counts["thrown"] != counts["caught"] {
			t.Errorf("%s: %d calls recorded, %v", mode, calls, counts)
		}
	}
}

// And while threads are cancelled.
func TestRecordersDetachWhileThreadsAreCancelled(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.GXX)
	for _, mode := range []string{"--eager", "--lazy"} {
		p := realtest.Start(t, realtest.Build(t, "cancel"))
		if cycles(t, realtest.Repeats(t, 6), p.Pid(), "", mode) == 0 {
			t.Errorf("%s: no call recorded", mode)
		}
		if counts := p.Finish(); counts["cancelled"] == 0 {
			t.Errorf("%s: %v", mode, counts)
		}
	}
}

// Unwinders start from wherever a signal has come, in stubs as elsewhere: exceptions that handlers throw are caught where they are
// without a recorder, handlers see whole stacks, and whoever is cancelled destroys what its frames hold.
func TestUnwindersStartFromStubs(t *testing.T) {
	t.Parallel()
	needLive(t, realtest.GXX)
	target := realtest.Build(t, "faults", "-fnon-call-exceptions")
	for _, mode := range []string{"--eager", "--lazy"} {
		p := realtest.Start(t, target)
		realtest.GiveWay(t, p.Pid())
		r := realtest.StartRecording(t, append(pidFlag(p), "-m", "faults*", mode)...)
		time.Sleep(300 * time.Millisecond)
		r.Signal(os.Kill) // the program has to get along alone
		r.Wait()
		time.Sleep(100 * time.Millisecond)
		realtest.MustCallreel(t, append([]string{"detach"}, pidFlag(p)...)...)
		if cycles(t, realtest.Repeats(t, 2), p.Pid(), "faults*", mode) == 0 {
			t.Errorf("%s: no call recorded", mode)
		}
		counts := p.Finish()
		if counts["caught"] == 0 || counts["walks"] == 0 || counts["cancelled"] == 0 || counts["kept"] != 0 {
			t.Errorf("%s: %v", mode, counts)
		}
		// On an island, a jump in padding, an unwinder still has nothing to go by.
		if counts["cut"]*100 > counts["walks"] {
			t.Errorf("%s: %d of %d walks did not come to the end", mode, counts["cut"], counts["walks"])
		}
	}
}
