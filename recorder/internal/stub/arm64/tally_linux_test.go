package arm64

import (
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// tally is a sink that holds events against what is true of every recording: known IDs, and an exit for each entry.
type tally struct {
	maxID          uint32
	entries, exits uint64
	dropped, lost  uint64
	open           []reel.Event
	abandoned      uint64 // entries without an exit
	unmatched      uint64 // exits without an entry
	unknown        uint64 // IDs that there are not
	untimed        uint64 // events without a time
	backward       uint64 // events before the one before
	last           uint64
	name           string
	captures       *stub.Captures
	values         [2][]stub.Value // of the last entry's payload, and the last exit's
	valued         uint64          // events with a payload
	wrong          string          // what is wrong with one
	keeps          map[uint32]stub.Keep
	kept           map[uint32]int // exits that carried arguments, by function
	marks          *stub.Capture
	marked, carry  uint64 // passings of markers, and those with a payload
	strange        int    // payloads that aren't of the exits before them
}

func (s *tally) Append(events []reel.Event) error {
	for _, e := range events {
		if e.ID() == 0 || e.ID() > s.maxID {
			s.unknown++
		}
		if e.Time == 0 {
			s.untimed++
		} else {
			if e.Time < s.last {
				s.backward++
			}
			s.last = e.Time
		}
		if e.IsExit() {
			s.exits++
			s.leave(e)
		} else {
			s.entries++
			for n := len(s.open); n > 0 && s.open[n-1].SP <= e.SP; n-- {
				s.open = s.open[:n-1]
				s.abandoned++
			}
			s.open = append(s.open, e)
		}
	}
	return nil
}

func (s *tally) leave(e reel.Event) {
	for n := len(s.open); n > 0 && s.open[n-1].SP < e.SP; n-- {
		s.open = s.open[:n-1]
		s.abandoned++
	}
	if n := len(s.open); n > 0 && s.open[n-1].SP == e.SP && s.open[n-1].ID() == e.ID() {
		s.open = s.open[:n-1]
		return
	}
	s.unmatched++
}

func (s *tally) Dropped(entries, exits, tick uint64) error {
	s.dropped += entries
	s.lost += exits
	return nil
}
