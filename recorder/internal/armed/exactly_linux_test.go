package armed

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// A dump's trigger begins with its call's entry, or when the stub saw it where that isn't recorded: never with that of an older call.
func TestATriggerBeginsWithItsOwnCall(t *testing.T) {
	in, out := reel.Entry, reel.Exit
	c := cause{tid: 5, function: 9, sp: 0x1000, from: 1000, to: 2000}
	for _, test := range []struct {
		name       string
		runs       []ring.Run
		gaps       []gap
		start, end uint64
	}{
		{"all is there", []ring.Run{{Events: []reel.Event{in(500, 0x1000, 7), out(600, 0x1000, 7), in(990, 0x1000, 7), in(1100, 0xf00, 3), out(1200, 0xf00, 3), out(1990, 0x1000, 7)}}},
			nil, 990, 1990},
		{"a signal handler in between", []ring.Run{{Events: []reel.Event{in(990, 0x1000, 7), in(993, 0xf00, 3), out(996, 0xf00, 3), out(1990, 0x1000, 7)}}}, nil, 990, 1990},
		{"the entry is missing, and an older call has returned", []ring.Run{{Events: []reel.Event{in(500, 0x1000, 7), out(600, 0x1000, 7), out(1990, 0x1000, 7)}}}, nil, 1000, 1990},
		{"an older call was unwound", []ring.Run{{Events: []reel.Event{in(500, 0x1000, 7), in(600, 0x1040, 3), out(1990, 0x1000, 7)}}}, nil, 1000, 1990},
		{"chunks are missing in between", []ring.Run{{Seq: 1, Events: []reel.Event{in(500, 0x1000, 7)}}, {Seq: 3, Events: []reel.Event{out(1990, 0x1000, 7)}}}, nil, 1000, 1990},
		{"the rings were frozen in between", []ring.Run{{Events: []reel.Event{in(500, 0x1000, 7), out(1990, 0x1000, 7)}}}, []gap{{550, 700, []int{5}}}, 1000, 1990},
		{"they were, but dropped nothing of it", []ring.Run{{Events: []reel.Event{in(990, 0x1000, 7), out(1990, 0x1000, 7)}}}, []gap{{550, 700, []int{5}}, {992, 995, []int{6}}}, 990, 1990},
		{"nothing is there", nil, nil, 1000, 2000},
	} {
		h := threadRuns{thread: &thread{nstid: 5}, runs: test.runs}
		got := reel.Trigger{Start: c.from, End: c.to}
		h.exactly(c, 7, &got, test.gaps)
		if got.Start != test.start || got.End != test.end {
			t.Errorf("%s: from %d to %d, want %d to %d", test.name, got.Start, got.End, test.start, test.end)
		}
	}
}
