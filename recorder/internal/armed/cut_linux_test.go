package armed

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/past"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// Where a process of several is late to take part in a dump, what it has lost since isn't missing from the dump.
func TestWhatIsMissingIsWithinTheDump(t *testing.T) {
	runs := func(list ...ring.Run) []ring.Run { return list }
	call := func(at uint64) []reel.Event { return []reel.Event{reel.Entry(at, 8, 1), reel.Exit(at+1, 8, 1)} }
	first, third := ring.Run{TID: 1, From: 10, To: 40, Events: call(12)}, ring.Run{TID: 1, Seq: 2, From: 100, Events: call(110)}
	for _, test := range []struct {
		name string
		t    threadRuns
		win  window
		want []window
	}{
		{"a gap in the dump", threadRuns{runs: runs(first, third)}, window{from: 5, to: 200}, []window{{from: 40, to: 100}}},
		{"a gap that goes on behind it", threadRuns{runs: runs(first, third)}, window{from: 5, to: 50}, []window{{from: 40, to: 50}}},
		{"a gap behind it", threadRuns{runs: runs(first, third)}, window{from: 5, to: 30}, nil},
		{"what the store has dropped", threadRuns{base: past.Base{Next: 2, To: 100}, runs: runs(third)}, window{from: 5, to: 60}, []window{{from: 5, to: 60}}},
	} {
		test.t.thread = &thread{}
		cut, err := test.t.cut(test.win, ofThreads{})
		if err != nil {
			t.Fatal(err)
		}
		if len(cut.missing) != len(test.want) || len(cut.missing) > 0 && cut.missing[0] != test.want[0] {
			t.Errorf("%s: missing %+v, want %+v", test.name, cut.missing, test.want)
		}
	}
}
