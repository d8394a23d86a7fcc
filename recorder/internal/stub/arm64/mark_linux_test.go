package arm64

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// marking makes functions that are a marker each: one that pauses, one that lets go on, one that says nothing, and an entry besides.
func marking(t testing.TB, c *coder) (funcs []uint64) {
	c.cfg.Says = map[uint32]stub.Say{1: stub.SayPause, 2: stub.SayResume}
	for id := uint32(1); id <= 4; id++ {
		c.Align(16)
		funcs = append(funcs, c.PC())
		c.low = 0
		if id < 4 {
			c.mark(id)
		} else {
			c.event(place{id: id})
		}
		c.Ret(lr)
		c.flush()
		c.Resolve()
	}
	return funcs
}

func TestMarkersKeepEveryRegister(t *testing.T) {
	for name, s := range map[string]stubSetup{"inline": {}, "old": {machine: oldMachine}, "SVE": {machine: sveMachine}, "followed": {follow: true}} {
		t.Run(name, func(t *testing.T) {
			s.ids, s.code, s.chunks = 4, marking, ring.MinChunks
			d := startDriver(t, s)
			d.doDraining("state %d", 1500)
			d.do("gate 0")
			d.do("state %d", 20)
			d.round()
			if n := d.drainer.Totals().Events; n < 3000 {
				t.Errorf("only %d events", n)
			}
		})
	}
}

// A program's markers pause its recording and let it go on, and are written themselves all the same.
func TestMarkersPauseAndLetGoOn(t *testing.T) {
	d := startDriver(t, stubSetup{ids: 4, code: marking})
	paused := func() bool { return d.raw[ring.PausedOff+ring.PausedSelf] != 0 }
	for i, want := range []struct {
		function int
		paused   bool
		events   uint64
	}{{3, false, 1}, {0, true, 2}, {3, true, 2}, {2, true, 2}, {0, true, 3}, {1, false, 4}, {3, false, 5}, {2, false, 6}, {1, false, 7}} {
		d.do("once %d", want.function)
		d.round()
		if n := d.drainer.Totals().Events; n != want.events || paused() != want.paused {
			t.Errorf("step %d: %d events, paused: %v; want %+v", i, n, paused(), want)
		}
	}
	d.mem.SetPausedAtFirst(true)
	d.do("once 1")
	if d.mem.PausedAtFirst() {
		t.Error("a pause from the beginning isn't ended")
	}
}
