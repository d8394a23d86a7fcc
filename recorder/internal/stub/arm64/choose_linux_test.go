package arm64

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// within holds events against what is chosen: no call is deeper than depth, and each is one of a function up to inside or made by one.
type within struct {
	tally
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

// What is recorded is what was asked for, with an exit for each entry, whatever signals come.
func TestChosenCallsAreWhole(t *testing.T) {
	for name, k := range map[string]struct {
		setup stubSetup
		want  int // of 8000 calls, each four deep; 0 for what isn't known
	}{
		"outermost":                  {stubSetup{depth: 1}, 2000},
		"outermost, old":             {stubSetup{depth: 1, machine: oldMachine}, 2000},
		"the third at most":          {stubSetup{depth: 3, shared: true, clock: stub.ClockNone}, 6000},
		"inside":                     {stubSetup{inside: 2}, 0},
		"inside, shared":             {stubSetup{inside: 2, shared: true}, 0},
		"one in 7":                   {stubSetup{every: 7, shared: true}, 0},
		"one in 4":                   {stubSetup{every: 4}, 2000},
		"inside, one in 3":           {stubSetup{inside: 2, every: 3, machine: oldMachine}, 0},
		"inside, at most the second": {stubSetup{inside: 3, depth: 2, shared: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := k.setup
			s.chunks = 256
			d := startDriver(t, s)
			var threads []*within
			d.drainer = ring.NewDrainer(d.mem, func(_, _ int, name string) (ring.Sink, error) {
				w := &within{tally: tally{maxID: 8, name: name}, depth: s.depth, inside: s.inside, every: s.every > 0}
				threads = append(threads, w)
				return w, nil
			})
			d.do("calls 8000")
			d.round()
			entries, wrong := 0, 0
			for _, w := range threads {
				entries, wrong = entries+int(w.entries), wrong+w.wrong
			}
			if wrong != 0 || k.want != 0 && entries != k.want || entries < 1000 || entries > 7000 {
				t.Errorf("%d calls, want %d; %d that were not asked for", entries, k.want, wrong)
			}
			d.do("alarm 300")
			d.doDraining("threads 4 8000")
			d.do("alarm 0")
			d.round()
			if err := d.drainer.Finish(); err != nil {
				t.Fatal(err)
			}
			for _, w := range threads {
				if w.unmatched != 0 || w.unknown != 0 || len(w.open) != 0 || w.abandoned != 0 {
					t.Errorf("%+v", w.tally)
				}
			}
			if n := d.drainer.Totals().Dropped; n != 0 {
				t.Errorf("%d dropped", n)
			}
		})
	}
}
