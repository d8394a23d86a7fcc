package timeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
	"github.com/callreel/callreel/reel"
)

// dumpThreads are threads of a dump: of the first two the outermost call was entered a minute before the window, which begins at the
// tick that is returned.
func dumpThreads(seed uint64) (threads [][]reel.Event, from uint64) {
	const minute = 60_000_000_000
	threads = someThreads(seed, 6000)
	for i := range threads {
		for k := range threads[i] {
			threads[i][k].Time += minute
		}
		if i < 2 {
			threads[i] = append([]reel.Event{reel.Entry(1000+uint64(i), threads[i][0].SP+4096, 7)}, threads[i]...)
		}
	}
	return threads, minute + 20_000
}

func TestDumpsAnswersAreThoseOfAllCalls(t *testing.T) {
	for seed := range uint64(2) {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, index stored: %v", seed, stored), func(t *testing.T) {
				threads, from := dumpThreads(seed)
				r := newTestReel(t, seed, 2_450_000_000, reel.ClockFull, threads...)
				realtest.Must(t, r.w.Dump(reel.Dump{From: from, To: from + 1_000_000, Missing: []reel.Missing{{From: from, To: from + 10}, {Thread: 3, From: from + 5000, To: math.MaxUint64}}}))
				for r.write(t, 1000) {
				}
				if stored {
					realtest.Must(t, Append(t.Context(), r.w, r.name, small()))
				}
				realtest.Must(t, r.w.Close())
				f, tl := openTest(t, r.name, small())
				if tl.Indexed() != stored {
					t.Fatalf("the index was used: %v", tl.Indexed())
				}
				check(t, tl, newModel(f), rand.New(rand.NewPCG(seed, 3)))
				checkMissing(t, tl, from)
			})
		}
	}
}

// checkMissing looks for what the dump says is missing, as gaps.
func checkMissing(t *testing.T, tl *Timeline, from uint64) {
	t.Helper()
	end := tl.Duration()
	for _, l := range tl.Lanes() {
		v, err := tl.View(t.Context(), Query{From: 0, To: end + 1, Width: 1 << 14, Lanes: []LaneRows{{l.ID, 0, 1}}})
		realtest.Must(t, err)
		holds := func(at uint64) bool {
			return len(v.Gaps) == 1 && slices.ContainsFunc(v.Gaps[0].Gaps, func(g Gap) bool { return g.Start <= at && at <= g.End })
		}
		if !holds(tl.NS(from + 5)) {
			t.Errorf("lane %d: what is missing of all threads is no gap", l.ID)
		}
		if l.Thread == 3 && (!holds(tl.NS(from+5001)) || !holds(end)) {
			t.Errorf("lane %d: what is missing of it is no gap", l.ID)
		}
	}
	if o, err := tl.Overview(t.Context(), 10); err != nil || o.From != tl.NS(from) {
		t.Errorf("the overview begins at %d, want %d (%v)", o.From, tl.NS(from), err)
	}
}

func TestMissingIsBounded(t *testing.T) {
	r := newTestReel(t, 1, 1e9, reel.ClockFull, someThreads(1, 100)...)
	d := reel.Dump{From: 1500, To: 1 << 40}
	for i := range uint64(100_000) {
		d.Missing = append(d.Missing, reel.Missing{Thread: uint32(i & 1), From: 4000 + 100*i, To: 4010 + 100*i}, reel.Missing{From: 9, To: 3})
	}
	realtest.Must(t, r.w.Dump(d))
	for r.write(t, 1000) {
	}
	realtest.Must(t, r.w.Close())
	f, _ := openTest(t, r.name, small())
	by := missingByThread(f)
	if len(by[0]) != maxMissingAll || len(by[1]) != maxMissing {
		t.Errorf("%d stretches of all threads, %d of one", len(by[0]), len(by[1]))
	}
	if last := by[0][maxMissingAll-1]; last.To != 4010+100*99_998 {
		t.Errorf("the last of all threads ends at %d", last.To)
	}
}
