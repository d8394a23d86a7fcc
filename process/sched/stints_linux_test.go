package sched_test

import (
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/callreel/callreel/process/sched"
)

// stintsNames are the threads of mode stints, by thread ID.
func stintsNames(lines []string) map[int]string {
	names := map[int]string{}
	for _, line := range lines {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "stints" {
			if tid, err := strconv.Atoi(f[1]); err == nil {
				names[tid] = f[2]
			}
		}
	}
	return names
}

func TestSumsOfShortStintsAgreeWithTheKernels(t *testing.T) {
	each(t, func(t *testing.T, o sched.Options) {
		seconds := "3"
		if s := os.Getenv("CALLREEL_TEST_SECONDS"); s != "" {
			seconds = s
		}
		p := target(t, "stints", seconds)
		w := watch(t, on(o, p), often)
		began := mark()
		p.Go()
		p.WaitLine("done")
		rate := rateSince(began)
		got := w.end()
		got.wantOrder(t)
		got.wantWhole(t)
		names := stintsNames(p.Stdout())
		for tid, name := range names {
			sums := got.sums[tid]
			s := got.spans(tid, got.summed[tid])
			ran, ready, pending := float64(s.running)/rate, float64(s.ready)/rate, float64(s.pending)/rate
			kernelRan, kernelReady := float64(sums.Running)/1e9, float64(sums.Ready)/1e9
			stints := float64(got.count(tid, sched.In))
			t.Logf("%-16s ran %10.6f kernel %10.6f (%+7.3f %%, %+7.3f us/stint)  ready %10.6f kernel %10.6f (%+7.3f %%, %+7.3f us/stint)  pending %.6f stints %.0f",
				name, ran, kernelRan, 100*(ran/kernelRan-1), 1e6*(ran-kernelRan)/stints, ready, kernelReady, 100*(ready/kernelReady-1), 1e6*(ready-kernelReady)/stints, pending, stints)
			_ = math.Abs
		}
		t.Logf("%+v", got.stats)
	})
}
