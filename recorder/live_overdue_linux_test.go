package recorder_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// Where a call waits of a function that a budget leaves out, it is in the reel, below all of its callers.
func TestSlowCallsOfFunctionsThatABudgetLeavesOutAreSeen(t *testing.T) {
	needLive(t)
	within := map[string][]string{"rs_request": {}, "rs_parse": {"rs_request"}, "rs_scan": {"rs_request"}, "rs_row": {"rs_scan", "rs_request"},
		"rs_find": {"rs_row", "rs_scan", "rs_request"}, "rs_hash": {"rs_find", "rs_row", "rs_scan", "rs_request"}, "rs_copy": {"rs_request"}}
	log := filepath.Join(t.TempDir(), "log")
	p := realtest.Start(t, realtest.Build(t, "rareslow"), log)
	r := realtest.StartRecording(t, "-p", fmt.Sprint(p.Pid()), "-f", "rs_*", "--budget", "1%")
	time.Sleep(5 * time.Second)
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
	clock := f.Header().Clock
	settled, all, seen := clock.BaseTick+2*clock.TicksPerSecond, 0, 0
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
		end := clock.BaseTick + 5*clock.TicksPerSecond
		if from < settled || to > end {
			continue
		}
		open := func(name string) bool {
			return slices.ContainsFunc(calls[name], func(c reel.Call) bool { return c.Start <= from && c.End >= to })
		}
		if all++; open(function) && !slices.ContainsFunc(within[function], func(name string) bool { return !open(name) }) {
			seen++
		}
	}
	if seen < 3 { // on a busy machine it is too late for many
		t.Errorf("%d of %d calls that waited are seen, with their callers; %+v", seen, all, sum.Budget)
	}
	t.Logf("%d of %d; %d calls were seen on stacks", seen, all, sum.Budget.Seen)
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
