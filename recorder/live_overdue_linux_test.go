package recorder_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/recorder"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// slowEvery is how many requests of rareslow there are for each that is slow: some ten of these a second, fewer where processors are emulated.
// That is recorded for slowFor.
var (
	slowEvery = map[string]int{"amd64": 10_000, "arm64": 1500}[runtime.GOARCH]
	slowFor   = map[string]time.Duration{"amd64": 5 * time.Second, "arm64": 20 * time.Second}[runtime.GOARCH]
)

// slowCallers are the functions of rareslow by those that call them, innermost first.
var slowCallers = map[string][]string{"rs_request": {}, "rs_parse": {"rs_request"}, "rs_scan": {"rs_request"}, "rs_row": {"rs_scan", "rs_request"},
	"rs_find": {"rs_row", "rs_scan", "rs_request"}, "rs_hash": {"rs_find", "rs_row", "rs_scan", "rs_request"}, "rs_copy": {"rs_request"}}

// callsByName are the calls of a reel, by the names of their functions.
func callsByName(t *testing.T, f *reel.File) map[string][]reel.Call {
	t.Helper()
	calls := map[string][]reel.Call{}
	for _, th := range f.Threads() {
		pairer := reel.Pairer{OnCall: func(c *reel.Call) {
			fn, _ := f.Function(c.Func)
			calls[fn.Name] = append(calls[fn.Name], *c)
		}}
		f.ReadThread(th.Key, func(events []reel.Event, _ bool) bool {
			pairer.Push(events)
			return true
		})
		pairer.Finish(f.EndOf(&th))
	}
	return calls
}

// slowSeen is how many of rareslow's slow calls between two ticks are in the calls of a reel, with all callers; of those for which counts, if not nil,
// says that they count.
func slowSeen(t *testing.T, log string, calls map[string][]reel.Call, begin, end uint64, counts func(name string, tick uint64) bool) (seen, all int) {
	t.Helper()
	file, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var function string
		var from, to uint64
		if _, err := fmt.Sscan(lines.Text(), &function, &from, &to); err != nil {
			t.Fatal(err)
		}
		if from < begin || to > end || counts != nil && !counts(function, from) {
			continue
		}
		open := func(name string) bool {
			return slices.ContainsFunc(calls[name], func(c reel.Call) bool { return c.Start <= from && c.End >= to })
		}
		if all++; open(function) && !slices.ContainsFunc(slowCallers[function], func(name string) bool { return !open(name) }) {
			seen++
		}
	}
	return seen, all
}

// Where a call waits of a function that a budget leaves out, it is in the reel, below all of its callers. What was open when recording began is
// from then on.
func TestSlowCallsOfFunctionsThatABudgetLeavesOutAreSeen(t *testing.T) {
	needLive(t)
	log := filepath.Join(t.TempDir(), "log")
	p := realtest.Start(t, realtest.Build(t, "rareslow"), log, fmt.Sprint(slowEvery))
	r := realtest.StartRecording(t, "-p", fmt.Sprint(p.Pid()), "-f", "rs_*", "-f", "main", "--budget", "1%")
	time.Sleep(slowFor)
	sum := stop(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
	if sum.Budget.FunctionsOff < 3 || sum.Budget.Seen == 0 {
		t.Fatalf("%+v", sum.Budget)
	}
	f, err := reel.Open(r.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls, clock := callsByName(t, f), f.Header().Clock
	seen, all := slowSeen(t, log, calls, clock.BaseTick+2*clock.TicksPerSecond, clock.BaseTick+ring.TicksOf(slowFor, clock.TicksPerSecond), nil)
	if seen < 3 { // of some 40; on a busy machine it is too late for many
		t.Errorf("%d of %d calls that waited are seen, with their callers; %+v", seen, all, sum.Budget)
	}
	if m := calls["main"]; len(m) != 1 || m[0].Start > clock.BaseTick+ring.TicksOf(slowFor/5, clock.TicksPerSecond) || m[0].End < clock.BaseTick+ring.TicksOf(slowFor-time.Second, clock.TicksPerSecond) {
		t.Errorf("main, which was open when recording began: %+v; the reel's times are from %d on", m, clock.BaseTick)
	}
	for _, c := range calls["rs_hash"] { // not that it has taken long where it was seen again and again
		if took := c.End - c.Start; took > clock.TicksPerSecond/2 {
			t.Errorf("a call of rs_hash took %.0f ms", 1e3*float64(took)/float64(clock.TicksPerSecond))
		}
	}
	t.Logf("%d of %d; %d calls were seen on stacks", seen, all, sum.Budget.Seen)
}

// So they are in a dump, where a condition is about a call around them.
func TestADumpHasSlowCallsOfFunctionsThatABudgetLeavesOut(t *testing.T) {
	needLive(t)
	log := filepath.Join(t.TempDir(), "log")
	p := realtest.Start(t, realtest.Build(t, "rareslow"), log, fmt.Sprint(slowEvery))
	r := realtest.StartRecording(t, "-p", fmt.Sprint(p.Pid()), "-f", "rs_*", "--budget", "1%", "--when", "rs_request > 10ms", "--keep", "1m", "--max", "2")
	time.Sleep(slowFor)
	d, err := recorder.AskForDump(context.Background(), p.Pid(), recorder.DumpRequest{Kind: reel.TriggerRequest})
	if err != nil {
		t.Fatal(err)
	}
	stopArmed(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
	f, err := reel.Open(d.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls, clock := callsByName(t, f), f.Header().Clock
	dump, _ := f.Dump()
	wasOff := func(name string, tick uint64) bool {
		return slices.ContainsFunc(f.Offs(), func(o reel.Off) bool {
			fn, _ := f.Function(o.Function)
			return fn.Name == name && o.From <= tick && tick <= o.To
		})
	}
	seen, all := slowSeen(t, log, calls, clock.BaseTick+2*clock.TicksPerSecond, dump.To, wasOff)
	if seen < 3 {
		t.Errorf("%d of %d calls that waited in functions that were off are seen, with their callers", seen, all)
	}
	t.Logf("%d of %d", seen, all)
}

// A function whose sites have to stay is left out, too: only its sites do. Exceptions go on through what is recorded.
func TestABudgetLeavesOutFunctionsWhoseSitesStay(t *testing.T) {
	needLive(t, realtest.GXX)
	p := realtest.Start(t, realtest.Build(t, "cxx"))
	r := realtest.StartRecording(t, "-p", fmt.Sprint(p.Pid()), "--budget", "0.1%")
	time.Sleep(3 * time.Second)
	sum := stop(t, r)
	wantUntouched(t, p.Pid())
	p.Finish()
	f, err := reel.Open(r.File)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !slices.ContainsFunc(f.Offs(), func(o reel.Off) bool {
		fn, _ := f.Function(o.Function)
		return fn.Name == "_dl_find_object"
	}) {
		t.Errorf("_dl_find_object was never off; %+v", sum.Budget)
	}
}
