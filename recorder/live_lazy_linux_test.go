package recorder_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

const (
	lazyFunctions = 1024 // of lazy.c
	lazyRounds    = 2
)

// callsOf are the calls of each function of lazy.c.
func callsOf(rep report) map[string]int64 {
	calls := map[string]int64{}
	for _, f := range rep.Functions {
		calls[f.Name] += f.Calls
	}
	return calls
}

// Threads that race for the first calls of the same functions: each function's
// probe is made once, every call is recorded, arguments and results are right.
// The second round makes no more probes, and all is as with probes that are
// made at once, be their event code inline or shared.
func TestProbesAreMadeOnTheFirstCallOfEachFunction(t *testing.T) {
	needLive(t)
	target := realtest.Build(t, "lazy")
	for _, threads := range []int{8, 64} {
		for _, mode := range [][]string{
			{"--lazy", "-f", "lazy_*"}, // more than have inline events
			{"--eager", "-f", "lazy_*"},
			{"--lazy", "-f", "lazy_00*"}, // 64, inline
			{"--lazy"},                   // libraries too
		} {
			if threads == 64 && len(mode) == 1 {
				continue
			}
			s, file := recordCounted(t, target, []string{strconv.Itoa(threads), strconv.Itoa(lazyRounds)}, mode)
			want := lazyFunctions
			if mode[len(mode)-1] == "lazy_00*" {
				want = 64
			}
			rep := reportOf(t, file)
			calls := callsOf(rep)
			for name, n := range calls {
				if strings.HasPrefix(name, "lazy_") && n != int64(threads*lazyRounds) {
					t.Errorf("%d threads, %v: %d calls of %s", threads, mode, n, name)
				}
			}
			if s.Dropped != 0 {
				t.Errorf("%d threads, %v: %d calls dropped", threads, mode, s.Dropped)
			}
			if len(mode) == 1 { // libraries' functions that were called, by whomever
				late := realtest.Emulated() && s.Functions.Compiled < len(rep.Functions) // the program has ended before its probes were made
				if s.Functions.Compiled == 0 || !late && (s.Functions.Compiled <= want || s.Functions.Compiled >= s.Functions.Traced || s.Functions.Compiled != len(rep.Functions)) {
					t.Errorf("%d threads, %v: %d probes made of %d, for %d functions that were called", threads, mode, s.Functions.Compiled, s.Functions.Traced, len(rep.Functions))
				}
				continue
			}
			if len(calls) != want || s.Functions.Compiled != want || s.Calls != int64(want*threads*lazyRounds) {
				t.Errorf("%d threads, %v: %d functions called, %d probes made, %d calls; want %d and %d", threads, mode,
					len(calls), s.Functions.Compiled, s.Calls, want, want*threads*lazyRounds)
			}
		}
	}
}

// Functions that are not called cost no probe.
func TestFunctionsThatAreNotCalledGetNoProbe(t *testing.T) {
	needLive(t)
	p := realtest.Start(t, realtest.Build(t, "lazy"))
	s := recordFor(t, "20ms", append(pidFlag(p), "--lazy", "-f", "lazy_*")...)
	wantUntouched(t, p.Pid())
	if s.Functions.Traced != lazyFunctions || s.Functions.Compiled != 0 || s.Calls != 0 {
		t.Errorf("%+v", s)
	}
	if n := len(reportOf(t, s.file).Functions); n != 0 {
		t.Errorf("%d functions in the report", n)
	}
	p.Finish()
}

// A recorder that is killed makes no more probes: functions that are called for
// the first time then run all the same, and what it left can be removed.
func TestFirstCallsOutliveTheRecorder(t *testing.T) {
	needLive(t)
	target := realtest.Build(t, "lazy")
	for _, threads := range []int{1, 8} {
		p := realtest.Start(t, target, strconv.Itoa(threads), strconv.Itoa(lazyRounds))
		r := realtest.StartRecording(t, append(pidFlag(p), "--lazy")...)
		r.Signal(os.Kill)
		r.Wait()
		p.Go()
		p.WaitLine("counted")
		realtest.MustCallreel(t, "detach", "-p", strconv.Itoa(p.Pid()))
		wantUntouched(t, p.Pid())
		p.Finish()
	}
}

// Recorders come and go while first calls are made all the time.
func TestLazyRecordersOfATargetUnderLoad(t *testing.T) {
	t.Parallel()
	needLive(t)
	t.Run("abi", func(t *testing.T) {
		p := realtest.Start(t, realtest.Build(t, "abi"))
		if cycles(t, realtest.Repeats(t, 4), p.Pid(), "", "--lazy") == 0 {
			t.Error("no call recorded")
		}
		if counts := p.Finish(); counts["signals"] == 0 {
			t.Errorf("%v", counts)
		}
	})
	t.Run("every register", func(t *testing.T) {
		p := realtest.Start(t, realtest.Build(t, "state"), "2")
		cycles(t, realtest.Repeats(t, 4), p.Pid(), "", "--lazy")
		if cycles(t, realtest.Repeats(t, 4), p.Pid(), "", "--lazy", "-f", "state_*", "-f", "shape_*") == 0 {
			t.Error("no call recorded")
		}
		if counts := p.Finish(); counts["calls"] == 0 {
			t.Errorf("%v", counts)
		}
	})
	t.Run("short-lived threads", func(t *testing.T) {
		p := realtest.Start(t, realtest.Build(t, "threads"), "churn", "4")
		if cycles(t, realtest.Repeats(t, 4), p.Pid(), "", "--lazy") == 0 {
			t.Error("no call recorded")
		}
		p.Finish()
	})
	t.Run("redis", func(t *testing.T) {
		realtest.Need(t, realtest.RedisTools)
		s := realtest.Redis(t)
		load := underLoad(t, func(ctx context.Context) (int64, error) { return s.Load(ctx, 1) })
		cycles(t, realtest.Repeats(t, 3), s.Pid(), "", "--lazy")
		load.end(t)
	})
}
