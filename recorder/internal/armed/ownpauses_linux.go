package armed

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/reel"
)

// saidBy is what a thread of a process has said to the recording.
type saidBy struct {
	process int
	markers.Said
}

// ownPauses are the pauses that programs have made themselves in a window, by what they have said in it. One that goes on without having paused
// was paused before.
func ownPauses(list []saidBy, win window) (pauses []reel.Pause) {
	slices.SortStableFunc(list, func(a, b saidBy) int { return cmp.Compare(a.Time, b.Time) })
	at := map[int]int{} // by process, one more than the place in pauses of that which is on
	met := map[int]bool{}
	for _, s := range list {
		if s.Time < win.from || s.Time > win.to {
			continue
		}
		switch {
		case s.Kind == sdt.Pause && at[s.process] == 0:
			pauses = append(pauses, reel.Pause{From: s.Time, By: "program", Process: s.process})
			at[s.process] = len(pauses)
		case s.Kind == sdt.Resume && at[s.process] != 0:
			x := &pauses[at[s.process]-1]
			x.To = max(s.Time, x.From+1)
			at[s.process] = 0
		case s.Kind == sdt.Resume && !met[s.process]:
			pauses = append(pauses, reel.Pause{From: win.from, To: max(s.Time, win.from+1), By: "program", Process: s.process})
		}
		met[s.process] = met[s.process] || s.Kind == sdt.Pause || s.Kind == sdt.Resume
	}
	return pauses
}
