package armed

import (
	"slices"
	"testing"

	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/reel"
)

func TestOwnPausesAreWhatProgramsHaveSaid(t *testing.T) {
	say := func(process int, kind sdt.Kind, at uint64) saidBy {
		return saidBy{process, markers.Said{Kind: kind, Time: at}}
	}
	pause := func(from, to uint64, process int) reel.Pause {
		return reel.Pause{From: from, To: to, By: "program", Process: process}
	}
	for _, c := range []struct {
		name string
		said []saidBy
		want []reel.Pause
	}{
		{"nothing", nil, nil},
		{"one", []saidBy{say(1, sdt.Pause, 20), say(1, sdt.Resume, 30)}, []reel.Pause{pause(20, 30, 1)}},
		{"out of order", []saidBy{say(1, sdt.Resume, 30), say(1, sdt.Pause, 20)}, []reel.Pause{pause(20, 30, 1)}},
		{"twice said", []saidBy{say(1, sdt.Pause, 20), say(1, sdt.Pause, 25), say(1, sdt.Resume, 30), say(1, sdt.Resume, 31)}, []reel.Pause{pause(20, 30, 1)}},
		{"before the window", []saidBy{say(1, sdt.Pause, 5), say(1, sdt.Resume, 30)}, []reel.Pause{pause(10, 30, 1)}},
		{"to the end", []saidBy{say(1, sdt.Pause, 90)}, []reel.Pause{pause(90, 0, 1)}},
		{"of two processes", []saidBy{say(1, sdt.Pause, 20), say(2, sdt.Pause, 25), say(1, sdt.Resume, 30), say(2, sdt.Resume, 40)},
			[]reel.Pause{pause(20, 30, 1), pause(25, 40, 2)}},
		{"a name", []saidBy{say(1, sdt.ThreadName, 20)}, nil},
	} {
		if got := ownPauses(c.said, window{from: 10, to: 100}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
