package collect

import (
	"cmp"
	"slices"

	"github.com/callreel/callreel/mark/sdt"
	"github.com/callreel/callreel/recorder/internal/markers"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// markSink is a ThreadSink that also takes the passings of markers. There is at least one.
type markSink interface {
	Marks(marks []reel.Mark) error
}

// Marks puts the passings of markers where they go. They take no part in the pairing of calls.
func (k *thread) Marks(events []reel.Event, payloads []ring.Payload) error {
	to, takes := k.ThreadSink.(markSink)
	if !takes {
		return nil
	}
	var err error
	marks, derr := k.c.Marks.Decode(events, payloads, &k.goroutine, func(s markers.Said) {
		switch {
		case s.Kind == sdt.ThreadName && s.Name != "" && err == nil:
			err = k.names(s.Name)
		case s.Kind == sdt.Pause || s.Kind == sdt.Resume:
			k.c.sayings++
			if k.c.Said != nil {
				k.c.said = append(k.c.said, Said{Process: k.pid, Pause: s.Kind == sdt.Pause, Time: s.Time})
			}
		}
	})
	if err != nil || derr != nil || len(marks) == 0 {
		if derr != nil {
			err = derr
		}
		return err
	}
	for i := range marks { // one that was late has the time of the one before
		m := &marks[i]
		m.Time = max(m.Time, k.marked)
		k.marked = m.Time
	}
	return to.Marks(marks)
}

// Said is what a program says of its recording: that it is to pause, or to go on.
type Said struct {
	Process int
	Pause   bool
	Time    uint64
}

// tellSaid tells what was said in a round.
func (d *Collector) tellSaid(began uint64, held bool) {
	if d.Said == nil {
		return
	}
	slices.SortStableFunc(d.said, func(a, b Said) int { return cmp.Compare(a.Time, b.Time) })
	d.Said(d.said, began, held)
	d.said = d.said[:0]
}

// Sayings is how many marks were none, but said to the recording that it is to pause, or to go on.
func (d *Collector) Sayings() uint64 { return d.sayings }

// names goes by the name that the thread has given itself in a mark, whatever others it has.
func (k *thread) names(name string) error {
	const most = 256 // bytes
	name = name[:min(len(name), most)]
	if k.given == name {
		return nil
	}
	k.given = name
	return k.Rename(name)
}
