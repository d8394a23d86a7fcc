package bigreel

import (
	"path/filepath"
	"testing"

	"github.com/callreel/callreel/reel"
)

func TestThreadsAreAsDeepAsAsked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "big.reel")
	if err := Write(name, Shape{Events: 400_000, Threads: 3, Depth: 40}); err != nil {
		t.Fatal(err)
	}
	f, err := reel.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n := f.Events(); n < 400_000 || n > 600_000 || len(f.Threads()) != 3 {
		t.Errorf("%d events of %d threads", n, len(f.Threads()))
	}
	depths := make([]int, 41)
	p := reel.Pairer{OnCall: func(c *reel.Call) { depths[c.Depth]++ }}
	f.ReadThread(1, func(events []reel.Event, _ bool) bool {
		p.Push(events)
		return true
	})
	if p.Unmatched != 0 || p.Open() != 0 || depths[0] != 1 || depths[40] < 100 {
		t.Errorf("%d unmatched, %d open, by depth %v", p.Unmatched, p.Open(), depths)
	}
}

func TestThreadsSwitchAsOftenAsAsked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "big.reel")
	if err := Write(name, Shape{Events: 400_000, Threads: 2, Depth: 40, Switches: 40_000}); err != nil {
		t.Fatal(err)
	}
	f, err := reel.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for key := range uint32(2) {
		running := 0
		r := f.States(key + 1)
		for x, ok := r.Next(); ok; x, ok = r.Next() {
			if x.State == reel.StateRunning {
				running++
			}
		}
		if running < 8_000 || running > 12_000 {
			t.Errorf("thread %d ran %d times", key+1, running)
		}
	}
}

func TestThreadsSayAsMuchAsAsked(t *testing.T) {
	name := filepath.Join(t.TempDir(), "big.reel")
	if err := Write(name, Shape{Events: 200_000, Threads: 2, Depth: 40, Marks: 40_000}); err != nil {
		t.Fatal(err)
	}
	f, err := reel.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.SummarizeMarks(reel.MarkSummaryOptions{})
	whole, count := uint64(0), uint64(0)
	for _, x := range s.Spans {
		whole, count = whole+x.Complete, count+x.Count
	}
	if f.MarkCount() < 40_000 || count-whole > 20 || whole < 10_000 || len(s.Counters) != 1 || len(s.Flows) != 1 || len(s.Spans) != steps+2 {
		t.Errorf("%d marks, %d of %d spans whole, %d titles", f.MarkCount(), whole, count, len(s.Spans))
	}
}
