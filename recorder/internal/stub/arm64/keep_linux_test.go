package arm64

import (
	"fmt"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
	"github.com/callreel/callreel/reel"
)

// carried looks at what an exit has carried.
func (s *tally) carried(e *reel.Event, payload []byte) {
	k, ok := stub.DecodeKept(payload)
	if s.kept == nil {
		s.kept = map[uint32]int{}
	}
	want, keeps := s.keeps[e.ID()]
	switch {
	case !ok || !k.Of(e.Time, e.SP, e.Word):
		s.strange++ // as what is behind a signal handler's events
	case !e.IsExit() || !keeps || k.Second != want.Second:
		s.wrong = fmt.Sprintf("an event %+v carries %x", *e, payload)
	default:
		s.kept[e.ID()]++
	}
}

// keptForms are the forms that event code takes whose arguments are kept: of all calls, of two arguments, of calls that there are none of.
var keptForms = map[uint32]stub.Keep{1: {Slot: 0}, 2: {Slot: 1, Second: true}, 3: {Slot: ring.KeptSlots - 1, Least: 1<<32 - 1}, 4: {Slot: 5}}

var keepers = map[string]stubSetup{
	"plain":         {},
	"old":           {machine: oldMachine},
	"stack moved":   {spDelta: true, alive: true},
	"lossless":      {lossless: true},
	"small chunks":  {divide: true, chunks: 64},
	"take back":     {min: true},
	"some threads":  {threads: true},
	"by the kernel": {noTLS: true},
	"by the stack":  {noTLS: true, stack: true, machine: oldMachine},
	"beside shared": {shared: true},
}

func TestKeepingArgumentsKeepsEveryRegister(t *testing.T) {
	for name, s := range keepers {
		t.Run(name, func(t *testing.T) {
			s.keeps = keptForms
			if s.chunks == 0 {
				s.chunks = ring.MinChunks
			}
			d := startDriver(t, s)
			d.doDraining("state %d", 300)
			d.do("gate 0")
			d.do("state %d", 20)
			d.do("gate 1")
			if !s.lossless {
				d.do("state %d", 800) // the pool runs empty: drops
			}
			d.round()
			for _, k := range d.threads {
				if k.wrong != "" {
					t.Error(k.wrong)
				}
				if k.strange != 0 {
					t.Errorf("%d payloads aren't of the exits before them", k.strange)
				}
				if k.kept[1] == 0 || k.kept[2] == 0 || k.kept[4] == 0 || k.kept[3] != 0 || k.kept[5] != 0 {
					t.Errorf("exits carried arguments: %v", k.kept)
				}
			}
			if n := d.drainer.Totals().Events; n < 4000 {
				t.Errorf("only %d events", n)
			}
		})
	}
}

// Whatever signals come in between, each call is there, and what an exit carries is of the exit's own call or can be told to be another's.
func TestKeptArgumentsUnderSignals(t *testing.T) {
	for name, m := range map[string]machine{"LSE": lseMachine, "old": oldMachine, "LSE, step by step": stepping(lseMachine), "old, step by step": stepping(oldMachine)} {
		t.Run(name, func(t *testing.T) {
			calls := 50000
			if m.singleStepping {
				calls = 10000
			}
			d := startDriver(t, stubSetup{machine: m, keeps: keptForms, chunks: 512})
			d.do("alarm 100")
			d.doDraining("threads 4 %d", calls/4)
			d.doDraining("calls %d", calls)
			d.do("alarm 0")
			d.finish(expect{signals: true})
			kept := 0
			for _, k := range d.threads {
				if k.wrong != "" {
					t.Error(k.wrong)
				}
				kept += k.kept[1]
			}
			if kept == 0 {
				t.Error("no exit carried arguments")
			}
		})
	}
}
