package recorder_test

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

var filteredFunctions = []string{"fa", "fb", "fc", "fd", "fe"}

// recordFiltered records testdata/targets/filters.c, whose long calls take so many ticks. It returns what the program counted.
func recordFiltered(t *testing.T, rounds, ticks string, flags ...string) (realtest.Counts, summary, string) {
	t.Helper()
	p := realtest.Start(t, realtest.Build(t, "filters"), rounds, "4", ticks)
	r := realtest.StartRecording(t, slices.Concat(pidFlag(p), flags, []string{"-f", "f?"})...)
	p.Go()
	p.WaitLine("counted ")
	s := stop(t, r)
	wantUntouched(t, p.Pid())
	return p.Finish(), s, r.File
}

// shortest is the duration of the shortest call of a reel that isn't open at the end, and how many calls there are by function.
func shortest(t *testing.T, file string) (least time.Duration, calls map[string]int64) {
	t.Helper()
	f, err := reel.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	least, calls = time.Hour, map[string]int64{}
	for _, thread := range f.Threads() {
		var p reel.Pairer
		p.OnCall = func(c *reel.Call) {
			fn, _ := f.Function(c.Func)
			calls[fn.Name]++
			if c.Flags&reel.Unfinished == 0 {
				ns := float64(c.End-c.Start) / float64(f.Header().Clock.TicksPerSecond) * 1e9
				least = min(least, time.Duration(ns+0.5))
			}
		}
		f.ReadThread(thread.Key, func(events []reel.Event, lost bool) bool {
			p.Push(events)
			return true
		})
		p.Finish(f.EndOf(&thread))
		if p.Unmatched != 0 {
			t.Errorf("%s: %d exits without an entry", thread.Name, p.Unmatched)
		}
	}
	return least, calls
}

func TestCallsThatAreTooShortAreLeftOut(t *testing.T) {
	needLive(t)
	const shortestKept = 50 * time.Microsecond
	ticks := "900000" // the clock having 0.9 to 18 GHz
	if runtime.GOARCH == "arm64" {
		ticks = "24000" // 24 to 480 MHz
	}
	for _, flags := range [][]string{nil, {"--lossless", "--ring", "512K"}, {"--follow", "--lazy"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			made, s, file := recordFiltered(t, "4000", ticks, append(flags, "--min", shortestKept.String())...)
			least, calls := shortest(t, file)
			if least < shortestKept {
				t.Errorf("a call of %v is in the reel", least)
			}
			var sum, all int64
			for _, f := range filteredFunctions {
				sum += calls[f]
				all += made[f]
				if calls[f] < made[f+"_must"] || calls[f] > made[f+"_may"] || made[f+"_must"] == 0 {
					t.Errorf("%d calls of %s, want %d to %d", calls[f], f, made[f+"_must"], made[f+"_may"])
				}
			}
			if s.Calls != sum || s.Dropped != 0 || s.LostExits != 0 || s.Torn != 0 {
				t.Errorf("%d calls in the reel; %+v", sum, s)
			}
			t.Logf("%d of %d calls, %d bytes", sum, all, s.Bytes)
		})
	}
}

// Threads that don't match aren't in the reel, and those that do are whole, whether they were there before or not.
func TestJustThreadsOfThatNameAreRecorded(t *testing.T) {
	needLive(t)
	for _, flags := range [][]string{{"--lazy", "--clock", "none"}, {"--min", "1ns"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			made, s, file := recordFiltered(t, "4000", "900000", append(flags, "--threads", "work-*")...)
			_, calls := shortest(t, file)
			for _, f := range filteredFunctions {
				if calls[f] != made[f+"_work"] || calls[f] == 0 {
					t.Errorf("%d calls of %s in the reel, want %d", calls[f], f, made[f+"_work"])
				}
			}
			rep := reportOf(t, file)
			for _, thread := range rep.Threads {
				if !strings.HasPrefix(thread.Name, "work-") {
					t.Errorf("thread %s is in the reel", thread.Name)
				}
			}
			if s.Threads != 2 || len(rep.Threads) != 2 || s.Calls != rep.Calls || s.Events != rep.Events {
				t.Errorf("%+v; %+v", s, rep)
			}
		})
	}
}

// wantCalls fails the test unless each function has as many calls as are wanted, and some. It returns how many these are together.
func wantCalls(t *testing.T, calls map[string]int64, want func(function string) int64) (sum int64) {
	t.Helper()
	for _, f := range filteredFunctions {
		sum += calls[f]
		if n := want(f); calls[f] != n || n == 0 {
			t.Errorf("%d calls of %s in the reel, want %d", calls[f], f, n)
		}
	}
	return sum
}

// With --depth and --inside just the calls are recorded that the program counted so, without a clock, too, and each with its exit but
// for those that longjmp has left.
func TestChosenCallsAreRecorded(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		flags []string
		kind  string
	}{
		{[]string{"--depth", "3", "--clock", "none", "--lazy"}, "_3"},
		{[]string{"--depth", "2", "--lossless", "--ring", "512K"}, "_2"},
		{[]string{"--inside", "fb", "--clock", "none", "--lazy"}, "_in"},
		{[]string{"--inside", "fb", "--follow", "--threads", "*"}, "_in"},
		{[]string{"--inside", "fb", "--depth", "50", "--min", "1ns"}, "_in"},
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			made, s, file := recordFiltered(t, "4000", "90000", c.flags...)
			_, calls := shortest(t, file)
			sum := wantCalls(t, calls, func(f string) int64 { return made[f+c.kind] })
			if s.Calls != sum || s.Dropped != 0 || s.LostExits != 0 || s.Torn != 0 {
				t.Errorf("%d calls in the reel; %+v", sum, s)
			}
		})
	}
}

// With --every all calls are counted, and one in so many of each function is recorded, from the first on.
func TestOneCallInSoManyIsRecorded(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		flags []string
		kind  string
		every int64
	}{
		{[]string{"--every", "7"}, "", 7},
		{[]string{"--every", "100", "--clock", "none", "--lazy"}, "", 100},
		{[]string{"--every", "3", "--inside", "fb", "--lossless", "--ring", "512K"}, "_in", 3},
	} {
		t.Run(strings.Join(c.flags, " "), func(t *testing.T) {
			made, s, file := recordFiltered(t, "4000", "90000", c.flags...)
			_, calls := shortest(t, file)
			sum := wantCalls(t, calls, func(f string) int64 { return (made[f+c.kind] + c.every - 1) / c.every })
			rep := reportOf(t, file)
			for _, f := range rep.Functions {
				if f.Calls != made[f.Name+c.kind] {
					t.Errorf("%d calls of %s in the report, the program made %d", f.Calls, f.Name, made[f.Name+c.kind])
				}
			}
			if s.Calls != sum || rep.Calls != sum || s.Dropped != 0 || len(rep.Functions) != len(filteredFunctions) {
				t.Errorf("%d calls in the reel; %+v", sum, s)
			}
		})
	}
}

// Calls on coroutines' stacks that are left and come back to are whole, too.
func TestChosenCallsOfCoroutinesAreWhole(t *testing.T) {
	needLive(t)
	target := realtest.Build(t, "abi", "-DCOROUTINE_STACK=(16<<20)")
	for _, flags := range [][]string{{"--depth", "50"}, {"--depth", "1"}, {"--inside", "produce"}, {"--inside", "produce", "--every", "3"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "abi.reel")
			realtest.MustCallreel(t, slices.Concat([]string{"record", "-o", file, "-m", "abi*", "-f", "yield", "-f", "produce", "-f", "add", "-f", "switch_stacks"}, flags, []string{"--", target, "10"})...)
			rep := reportOf(t, file)
			if rep.Unmatched != 0 || rep.Events != 2*rep.Calls || rep.Calls < 1000 {
				t.Errorf("%d calls, %d events, %d exits without an entry", rep.Calls, rep.Events, rep.Unmatched)
			}
			for _, f := range rep.ends.Functions {
				if f.Unfinished+f.Implicit != 0 {
					t.Errorf("%s has %d entries without exit and %d ended by another's", f.Name, f.Unfinished, f.Implicit)
				}
			}
		})
	}
}
