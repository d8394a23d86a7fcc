package reel

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestSwitchNamesAnyGoroutine(t *testing.T) {
	for _, id := range []uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<61 - 1} {
		e := Switch(7, id)
		if got, ok := e.Goroutine(); !ok || got != id || e.Time != 7 || !e.IsExit() {
			t.Errorf("goroutine %d: %d %v, %+v", id, got, ok, e)
		}
	}
	for _, e := range []Event{Entry(1, 2, 1), Exit(1, 2, 1), Entry(1, 2, MaxID), Exit(1, 2, MaxID), {}} {
		if id, ok := e.Goroutine(); ok {
			t.Errorf("%+v names goroutine %d", e, id)
		}
	}
}

// A goroutine that has ended has no open calls, though the last of them never returns.
func TestGoroutinesThatHaveEndedHaveNoOpenCalls(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.reel")
	w, err := Create(path, Header{Goroutines: true, Clock: Clock{BaseTick: 1}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddFunctions([]Function{{Name: "main.work"}, {Name: "runtime.goexit1"}}); err != nil {
		t.Fatal(err)
	}
	tw, err := w.Thread(Thread{TID: 1, Process: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := tw.Append([]Event{Switch(10, 7), Entry(11, 500, 1), Exit(12, 500, 1), Entry(13, 500, 2), Switch(20, 8), Entry(21, 500, 1), Exit(99, 500, 1)}); err != nil {
		t.Fatal(err)
	}
	f := reopen(t, w, path)
	s := Summarize(f, SummaryOptions{})
	for _, fn := range s.Functions {
		switch {
		case fn.Unfinished != 0, fn.Name == "main.work" && fn.Calls != 2, fn.Name == "runtime.goexit1" && (fn.Calls != 1 || fn.Implicit != 1 || fn.Total != 0):
			t.Errorf("%+v", fn)
		}
	}
	if len(s.Functions) != 2 {
		t.Errorf("%+v", s.Functions)
	}
}

// Two goroutines that change places between two threads, and what runs on the threads' own stacks.
func TestGoroutinesArePairedAcrossThreads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.reel")
	w, err := Create(path, Header{Goroutines: true, Clock: Clock{BaseTick: 1}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddFunctions([]Function{{Name: "outer"}, {Name: "inner"}, {Name: "schedule"}}); err != nil {
		t.Fatal(err)
	}
	const far = 5 << 32 // an ID of more than 32 bits
	threads := [][]Event{
		{
			Entry(10, 900, 3), Switch(20, 7), Entry(21, 500, 1), Entry(22, 400, 2), // 7 goes in the middle of inner
			Switch(30, 0), Exit(31, 900, 3), Switch(40, far), Exit(41, 400, 2), Exit(42, 500, 1),
		},
		{
			Switch(15, far), Entry(16, 500, 1), Entry(17, 400, 2), // goes to the other thread
			Switch(35, 7), Exit(36, 400, 2), Entry(37, 400, 2), Exit(38, 400, 2), Exit(39, 500, 1),
		},
	}
	for i, events := range threads {
		tw, err := w.Thread(Thread{TID: 100 + i, Process: 100})
		if err != nil {
			t.Fatal(err)
		}
		if err := tw.Append(events); err != nil {
			t.Fatal(err)
		}
	}
	f := reopen(t, w, path)
	if !f.Header().Goroutines {
		t.Error("the header doesn't say that there are goroutines")
	}
	s := Summarize(f, SummaryOptions{})
	if s.Calls != 6 || s.UnmatchedExits != 0 {
		t.Errorf("%d calls, %d unmatched exits, want 6 and none", s.Calls, s.UnmatchedExits)
	}
	want := map[string]FunctionSummary{
		"outer":    {Calls: 2, Total: 39 - 21 + 42 - 16, Self: 39 - 21 + 42 - 16 - (36 - 22) - (38 - 37) - (41 - 17)},
		"inner":    {Calls: 3, Total: 36 - 22 + 38 - 37 + 41 - 17, Self: 36 - 22 + 38 - 37 + 41 - 17},
		"schedule": {Calls: 1, Total: 21, Self: 21},
	}
	for _, fn := range s.Functions {
		if w := want[fn.Name]; fn.Calls != w.Calls || fn.Total != w.Total || fn.Self != w.Self || fn.Unfinished+fn.Implicit != 0 {
			t.Errorf("%s: %+v, want %+v", fn.Name, fn, w)
		}
	}
	wantIDs := []GoroutineSummary{{ID: 7, Thread: 2, Runs: 2, Calls: 3}, {ID: far, Thread: 1, Runs: 2, Calls: 2}, {ID: 0, Thread: 1, Runs: 2, Calls: 1}}
	if !slices.Equal(s.Goroutines, wantIDs) {
		t.Errorf("%+v, want %+v", s.Goroutines, wantIDs)
	}
}

// A goroutine that comes back to a thread on which nobody else's calls were recorded meanwhile is not named there again.
func TestGoroutinesThatComeBackAreReadInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "back.reel")
	w, err := Create(path, Header{Goroutines: true, Clock: Clock{BaseTick: 1}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddFunctions([]Function{{Name: "main.outer"}, {Name: "main.inner"}}); err != nil {
		t.Fatal(err)
	}
	for tid, events := range [][]Event{
		{Switch(10, 7), Entry(11, 500, 1), Entry(12, 400, 2), Exit(40, 500, 1), Entry(41, 500, 1), Exit(60, 500, 1)},
		{Switch(15, 8), Entry(16, 500, 1), Exit(17, 500, 1), Switch(20, 7), Exit(21, 400, 2), Entry(22, 400, 2), Exit(23, 400, 2), Switch(50, 8), Entry(51, 500, 1), Exit(52, 500, 1)},
	} {
		tw, err := w.Thread(Thread{TID: tid + 1, Process: 1})
		if err == nil {
			err = tw.Append(events)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	f := reopen(t, w, path)
	s := Summarize(f, SummaryOptions{})
	calls := map[string]uint64{}
	for _, fn := range s.Functions {
		calls[fn.Name] = fn.Calls
		if fn.Unfinished != 0 || fn.Implicit != 0 {
			t.Errorf("%+v", fn)
		}
	}
	if calls["main.outer"] != 4 || calls["main.inner"] != 2 {
		t.Errorf("%v", calls)
	}
	for _, g := range s.Goroutines {
		if g.UnmatchedExits != 0 || g.Runs != 2 {
			t.Errorf("%+v", g)
		}
	}
}
