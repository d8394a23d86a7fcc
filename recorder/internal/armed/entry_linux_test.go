package armed

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/reel"
)

func TestEntryThatTheRingsHoldNoMoreIsAdded(t *testing.T) {
	in, out := reel.Entry, reel.Exit
	added := in(500, 0x1000, 7)
	tests := []struct {
		name   string
		open   []reel.Event
		events [][]reel.Event
		want   []reel.Event // nil: as it was
	}{
		{"nothing is there", nil, nil, []reel.Event{added}},
		{"it was open when the window began", []reel.Event{in(499, 0x1000, 7)}, [][]reel.Event{{in(600, 0xf00, 2), out(700, 0xf00, 2)}}, nil},
		{"it is within the window", nil, [][]reel.Event{{in(498, 0x1000, 7)}, {in(600, 0xf00, 2)}}, nil},
		{"all before is overwritten", nil, [][]reel.Event{{out(600, 0xf00, 2)}}, []reel.Event{added, out(600, 0xf00, 2)}},
		{"an earlier call has ended", nil, [][]reel.Event{{in(100, 0x1000, 7), out(200, 0x1000, 7)}, {out(600, 0xf00, 2)}}, []reel.Event{in(100, 0x1000, 7), out(200, 0x1000, 7), added, out(600, 0xf00, 2)}},
		{"an earlier call was unwound", nil, [][]reel.Event{{in(100, 0x1000, 7), in(300, 0x1100, 3), out(600, 0xf00, 2)}}, []reel.Event{in(100, 0x1000, 7), in(300, 0x1100, 3), added, out(600, 0xf00, 2)}},
		{"between calls that were open", []reel.Event{in(100, 0x1100, 3), in(600, 0xf00, 2)}, [][]reel.Event{{out(700, 0xf00, 2)}}, []reel.Event{in(100, 0x1100, 3), added, in(600, 0xf00, 2), out(700, 0xf00, 2)}},
		{"nothing is behind", nil, [][]reel.Event{{in(100, 0x1100, 3)}}, []reel.Event{in(100, 0x1100, 3), added}},
	}
	for _, test := range tests {
		c := cutEvents{open: test.open, events: test.events}
		before := slices.Concat(append([][]reel.Event{c.open}, c.events...)...)
		thread := &threadRuns{thread: &thread{nstid: 5}}
		thread.addEntries(&c, []cause{{tid: 6, function: 9, sp: 1, from: 1}, {tid: 5, from: 2}, {tid: 5, function: 7, sp: 0x1000, from: 500, to: 900}})
		want := test.want
		if want == nil {
			want = before
		}
		if got := slices.Concat(append([][]reel.Event{c.open}, c.events...)...); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", test.name, got, want)
		}
	}
}
