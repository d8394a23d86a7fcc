package sched_test

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/internal/ticks"
	"github.com/callreel/callreel/process/sched"
)

// TestSumsOfShortStintsAreTheKernels: all threads wait at the end, so that the kernel has counted all that they did.
func TestSumsOfShortStintsAreTheKernels(t *testing.T) {
	seconds := "2"
	if s := os.Getenv("CALLREEL_TEST_SECONDS"); s != "" {
		seconds = s
	}
	for name, busy := range map[string]string{"crowded": "1", "alone": "0"} {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, o sched.Options) {
				sumsOfStints(t, o, seconds, busy)
			})
		})
	}
}

func sumsOfStints(t *testing.T, o sched.Options, seconds, busy string) {
	p := target(t, "stints", seconds, busy)
	w := watch(t, on(o, p), often)
	began, stolen := mark(), machineStole(t)
	p.Go()
	p.WaitLine("done")
	names := map[int]string{}
	for _, line := range p.Stdout() {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "stints" {
			if tid, err := strconv.Atoi(f[1]); err == nil {
				names[tid] = f[2]
			}
		}
	}
	for tid := range names {
		waitAsleep(t, p, tid)
	}
	sums, at := map[int]sched.Sums{}, ticks.Now()
	for tid := range names {
		sums[tid], _ = w.Sums(tid)
	}
	rate := rateSince(began)
	stolen = machineStole(t) - stolen
	got := w.end()
	got.wantOrder(t)
	got.wantWhole(t)
	if len(names) < 8 {
		t.Fatalf("%d threads have told their names", len(names))
	}
	// Of a switch that the kernel hasn't told of, which wantWhole allows a few of, a stint is missing, or is too long by as much.
	const slice = 0.003
	odd := slice * float64(got.stats.Odd)
	most, between := 1, slice // sums that may be off by more than a share, and by how much
	if realtest.Emulated() {
		most, between = len(names)/2, 10*slice
	}
	// A host that takes the processor away between the kernel's reading of its clock and the program's makes one stint shorter or longer by that,
	// which isn't in what it tells to have stolen if it is less than a tick.
	var late []string
	for tid, name := range names {
		s := got.spans(tid, at)
		ran, ready, unknown := float64(s.running)/rate, float64(s.ready)/rate, float64(s.unknown)/rate
		kernelRan, kernelReady := float64(sums[tid].Running)/1e9, float64(sums[tid].Ready)/1e9
		stints := float64(got.count(tid, sched.In))
		t.Logf("%-16s %7.0f stints; ran %10.6f s, kernel %10.6f, %+7.3f %%; ready %10.6f s, kernel %10.6f, %+7.3f %%; unknown %.6f",
			name, stints, ran, kernelRan, 100*(ran/kernelRan-1), ready, kernelReady, 100*(ready/kernelReady-1), unknown)
		if !w.WakeUps() {
			continue // no sums of the kernel's come with the events
		}
		// A stint that a drain has cut in two begins where it was measured.
		if by := math.Abs(ran - kernelRan); by > 0.01*kernelRan+5e-6+unknown+odd {
			if late = append(late, name); by > between {
				t.Errorf("%s ran %.6f s, the kernel says %.6f", name, ran, kernelRan)
			}
		}
		// The kernel counts from a moment before it tells of a wake-up, and not what the host has stolen.
		if by := math.Abs(ready - kernelReady); by > 0.01*kernelReady+1e-6*stints+unknown+odd+stolen.Seconds() {
			if late = append(late, name); by > between {
				t.Errorf("%s was ready for %.6f s, the kernel says %.6f", name, ready, kernelReady)
			}
		}
	}
	slices.Sort(late)
	if late = slices.Compact(late); len(late) > most {
		t.Errorf("the sums of %q aren't the kernel's", late)
	}
	t.Logf("stolen %v; %+v", stolen, got.stats)
}

// waitAsleep waits until a thread sleeps.
func waitAsleep(t *testing.T, p *realtest.Proc, tid int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/task/" + strconv.Itoa(tid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		if f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:])); len(f) > 0 && f[0] == "S" {
			return
		}
	}
	t.Fatalf("thread %d doesn't sleep", tid)
}

// machineStole is what the machine's host has taken since it runs (proc_stat(5)).
func machineStole(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(text))
	if len(f) < 9 {
		return 0
	}
	n, _ := strconv.Atoi(f[8])
	return time.Duration(n) * 10 * time.Millisecond
}
