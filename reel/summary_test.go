package reel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/callreel/callreel/internal/realtest"
)

// handMade is a reel whose ticks are nanoseconds: two threads that call main,
// work and spin, with recursion, an exception, an open call and a drop.
func handMade(t *testing.T, mode ClockMode) *File {
	t.Helper()
	h := testHeader
	h.Clock.Mode = mode
	h.Clock.BaseTick = 1000
	w, name := create(t, h)
	_, err := w.AddImage(Image{Path: "/usr/bin/prog"})
	realtest.Must(t, err)
	_, err = w.AddFunctions([]Function{{Name: "main", Image: 1}, {Name: "work", Image: 1}, {Name: "spin"}, {Name: "never", Image: 1}})
	realtest.Must(t, err)
	a := addThread(t, w, Thread{TID: 1, Name: "main"})
	realtest.Must(t, a.Append([]Event{
		Exit(1001, base+64, 2), // open before recording
		Entry(1010, base, 1),
		Entry(1100, base-32, 2), Exit(1200, base-32, 2), // 100
		Entry(1300, base-32, 2), // 300, with itself inside
		Entry(1400, base-64, 2), Exit(1500, base-64, 2),
		Exit(1600, base-32, 2),
		Entry(1700, base-32, 3), Entry(1750, base-64, 2), // left by an exception
		Exit(2010, base, 1),
	}))
	realtest.Must(t, a.Dropped(3, 2, 1800))
	b := addThread(t, w, Thread{TID: 2, Name: "worker"})
	realtest.Must(t, b.Append([]Event{Entry(1500, base-1<<24, 3)})) // never ends
	realtest.Must(t, w.ClockPair(3000, h.Clock.BaseUnixNS+2000))
	realtest.Must(t, w.Close())
	return open(t, name)
}

func TestSummaryOfAHandMadeReel(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		s := Summarize(handMade(t, ClockFull), SummaryOptions{Workers: workers})
		want := []FunctionSummary{
			{ID: 1, Name: "main", Module: "prog", Calls: 1, Total: 1000, Self: 1000 - 100 - 300 - 310, P50: 1000, P99: 1000, Complete: 1, Max: 1000, EndedMax: 1000},
			{ID: 2, Name: "work", Module: "prog", Calls: 4, Total: 100 + 300 + 260, Self: 100 + 200 + 100 + 260, P50: 100, P99: 300, Complete: 3, Max: 300, EndedMax: 300, Implicit: 1},
			// What is unfinished doesn't count for the order, and there is no call to take percentiles of.
			{ID: 3, Name: "spin", Calls: 2, Total: 1500 + 310, Self: 1500 + 50, Max: 1500, Unfinished: 1, UnfinishedTotal: 1500, UnfinishedSelf: 1500, EndedMax: 310, Implicit: 1},
		}
		for i := range s.Functions {
			// Percentiles are right to 1/128.
			f := &s.Functions[i]
			f.P50, f.P99 = near(f.P50, 100, 300, 1000), near(f.P99, 100, 300, 1000)
		}
		if !slices.Equal(s.Functions, want) {
			t.Errorf("%d workers: functions\n  %+v\nwant\n  %+v", workers, s.Functions, want)
		}
		if s.Calls != 7 || s.Events != 12 || s.DroppedEntries != 3 || s.DroppedExits != 2 || s.UnmatchedExits != 1 || s.Duration != 2000 {
			t.Errorf("summary %+v", s)
		}
		threads := []string{}
		for _, th := range s.Threads {
			threads = append(threads, fmt.Sprintf("%d %s %d calls, %d dropped, %d unmatched", th.TID, th.Name, th.Calls, th.Dropped, th.UnmatchedExits))
		}
		if want := []string{"1 main 6 calls, 5 dropped, 1 unmatched", "2 worker 1 calls, 0 dropped, 0 unmatched"}; !slices.Equal(threads, want) {
			t.Errorf("threads %q, want %q", threads, want)
		}
	}
}

// near returns the candidate that v is within 1/128 of, or v.
func near(v uint64, candidates ...uint64) uint64 {
	for _, c := range candidates {
		if max(v, c)-min(v, c) <= c/128 {
			return c
		}
	}
	return v
}

func TestSummaryMatchesShownAndRecordedNames(t *testing.T) {
	f := handMade(t, ClockFull)
	for _, pattern := range []string{"work", "WORK"} {
		s := Summarize(f, SummaryOptions{Name: strings.ToUpper, Match: func(n string) bool { return n == pattern }})
		if len(s.Functions) != 1 || s.Functions[0].Name != "WORK" || s.Functions[0].Calls != 4 || s.Calls != 7 {
			t.Errorf("match %q: %+v of %d calls", pattern, s.Functions, s.Calls)
		}
	}
}

func TestSummaryWithoutClockCountsOnly(t *testing.T) {
	h := testHeader
	h.Clock = Clock{Mode: ClockNone}
	w, name := create(t, h)
	_, err := w.AddFunctions([]Function{{Name: "f"}})
	realtest.Must(t, err)
	tw := addThread(t, w, Thread{TID: 1})
	realtest.Must(t, tw.Append([]Event{Entry(0, 64, 1), Entry(0, 32, 1), Exit(0, 32, 1), Exit(0, 64, 1)}))
	realtest.Must(t, w.Close())
	s := Summarize(open(t, name), SummaryOptions{})
	if want := []FunctionSummary{{ID: 1, Name: "f", Calls: 2, Complete: 2}}; !slices.Equal(s.Functions, want) || s.Duration != 0 {
		t.Errorf("%+v, duration %d", s.Functions, s.Duration)
	}
}

func TestPercentilesAreWithinOnePercent(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []int{1, 5, 63, 64, 65, 1000, 1 << 20, 1 << 40} {
		var h histogram
		values := make([]uint64, 10_001)
		for i := range values {
			values[i] = rng.Uint64N(uint64(spread)) * uint64(1+rng.IntN(3))
			h.add(values[i])
		}
		slices.Sort(values)
		for _, p := range []uint64{1, 50, 99, 100} {
			rank := (uint64(len(values))*p + 99) / 100
			want, got := values[rank-1], h.percentile(p)
			if diff := max(want, got) - min(want, got); diff > want/100 {
				t.Errorf("spread %d: p%d is %d, want %d", spread, p, got, want)
			}
		}
	}
	var extreme histogram
	extreme.add(1<<64 - 1)
	if got := extreme.percentile(50); got < 1<<63 {
		t.Errorf("p50 of the largest value is %d", got)
	}
	if got := new(histogram).percentile(50); got != 0 {
		t.Errorf("p50 of nothing is %d", got)
	}
}
