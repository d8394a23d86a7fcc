package arm64

import (
	"testing"
)

// Entries of short calls are taken back; those of long ones stay, and so do all where signals come in between.
func TestShortCallsAreTakenBack(t *testing.T) {
	const never = 1 << 60 // ticks that no call takes
	for name, s := range map[string]stubSetup{"inline": {}, "shared": {shared: true}, "old": {machine: oldMachine}, "old, shared": {machine: oldMachine, shared: true}, "stack moved": {spDelta: true, alive: true}} {
		t.Run(name, func(t *testing.T) {
			s.min, s.chunks = true, 256
			d := startDriver(t, s)
			d.mem.SetMin(never)
			d.drainer.Min, d.drainer.TakesBack = 0, true
			d.do("state 100")
			d.do("calls 50000")
			d.round()
			if n := d.drainer.Totals().Events; n != 0 {
				t.Errorf("%d events of calls that are all too short", n)
			}
			d.mem.SetMin(0)
			d.do("calls 1000")
			d.round()
			if err := d.drainer.Finish(); err != nil {
				t.Fatal(err)
			}
			if sum := d.drainer.Totals(); sum.Entries != 1000 || sum.Events != 2000 {
				t.Errorf("%+v, want 1000 calls", sum)
			}
		})
	}
}

func TestASignalMayComeWhileACallIsTakenBack(t *testing.T) {
	for name, m := range map[string]machine{"LSE": lseMachine, "old": oldMachine} {
		t.Run(name, func(t *testing.T) {
			m.singleStepping = true
			d := startDriver(t, stubSetup{machine: m, min: true, chunks: 256})
			d.mem.SetMin(1 << 60)
			d.drainer.TakesBack = true
			d.do("alarm 60")
			d.doDraining("calls %d", 30000)
			d.do("alarm 0")
			d.round()
			if err := d.drainer.Finish(); err != nil {
				t.Fatal(err)
			}
			sum := d.drainer.Totals()
			if sum.Events != 2*sum.Entries || sum.Torn != 0 || sum.Dropped != 0 {
				t.Errorf("%+v", sum)
			}
			for _, k := range d.threads {
				if k.unknown != 0 || k.abandoned != 0 || k.unmatched != 0 || len(k.open) != 0 {
					t.Errorf("%+v", *k)
				}
			}
			t.Logf("%d calls stayed", sum.Entries)
		})
	}
}
