package amd64

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// within holds events against what is chosen: no call is deeper than depth, and each is one of a function up to inside or made by one.
type within struct {
	*tally
	depth, inside int
	every         bool
	wrong         int
}

func (w *within) Append(events []reel.Event) error {
	for i, e := range events {
		if err := w.tally.Append(events[i : i+1]); err != nil {
			return err
		}
		if e.IsExit() {
			continue
		}
		in := w.inside == 0 || w.every // those of which they are inside may not be recorded
		for _, o := range w.open {
			in = in || o.ID() <= uint32(w.inside)
		}
		if !in || w.depth > 0 && len(w.open) > w.depth {
			w.wrong++
		}
	}
	return nil
}

// startChoosing starts a driver whose entries are chosen.
func startChoosing(t *testing.T, s stubSetup) (*driver, *[]*within) {
	t.Helper()
	d := startDriver(t, s)
	var threads []*within
	d.drainer = ring.NewDrainer(d.mem.Memory, func(_, _ int, name string) (ring.Sink, error) {
		w := &within{tally: &tally{maxID: 8, name: name}, depth: s.depth, inside: s.inside, every: s.every > 0}
		threads = append(threads, w)
		return w, nil
	})
	return d, &threads
}

// What is recorded is what was asked for, with an exit for each entry, whatever signals come, and with calls that are left by longjmp.
func TestChosenCallsAreWhole(t *testing.T) {
	for name, s := range map[string]stubSetup{
		"outermost":                        {depth: 1},
		"the third at most":                {depth: 3, shared: true, clock: stub.ClockNone},
		"inside":                           {inside: 2},
		"inside, shared":                   {inside: 2, shared: true},
		"one in 7":                         {every: 7, shared: true},
		"inside, one in 3":                 {inside: 2, every: 3},
		"inside, at most the second":       {inside: 3, depth: 2, shared: true},
		"inside, lossless with few chunks": {inside: 3, depth: 2, lossless: true, chunks: 12},
	} {
		t.Run(name, func(t *testing.T) {
			d, threads := startChoosing(t, s)
			d.do("state 20")
			for range 20 {
				d.do("enter")
			}
			d.do("calls 1000")
			for range 10 {
				d.do("forget")
			}
			d.do("calls 1000")
			for range 10 {
				d.do("leave")
			}
			d.do("calls 1000")
			d.round()
			wrong := 0
			for _, w := range *threads {
				wrong += w.wrong
			}
			// What a handler finds between an event and its record isn't as it looks in the ring: see below for pairs only.
			d.do("storm 50")
			d.doDraining("crowd 4 30000")
			d.do("storm 0")
			d.round()
			if err := d.drainer.Finish(); err != nil {
				t.Fatal(err)
			}
			var entries, abandoned uint64
			for _, w := range *threads {
				if w.unmatched != 0 || w.unknown != 0 || len(w.open) != 0 {
					t.Errorf("%+v", *w.tally)
				}
				entries += w.entries
				abandoned += w.abandoned
			}
			if wrong != 0 {
				t.Errorf("%d calls that were not asked for", wrong)
			}
			if abandoned > 10 { // those that were left by longjmp
				t.Errorf("%d entries without exits", abandoned)
			}
			if entries < 1000 || entries > uint64(d.number("made")) {
				t.Errorf("%d calls", entries)
			}
			t.Logf("%d of %d calls, %d of them left", entries, d.number("made"), abandoned)
		})
	}
}
