package arm64

import (
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// templates are the forms that event code takes.
var templates = map[string]stubSetup{
	"inline":                {},
	"inline, old processor": {machine: oldMachine},
	"SVE":                   {machine: sveMachine},
	"SVE and SME":           {machine: smeMachine},
	"streaming":             {machine: streaming},
	"streaming, no SVE":     {machine: smeAlone, lossless: true},
	"shared":                {shared: true},
	"shared, old":           {shared: true, machine: oldMachine},
	"inline, stack moved":   {spDelta: true},
	"shared, stack moved":   {spDelta: true, shared: true},
	"x16 and x17 alive":     {alive: true},
	"shared, alive":         {alive: true, shared: true},
	"clock at exits only":   {clock: stub.ClockExit},
	"shared, clock at exit": {clock: stub.ClockExit, shared: true},
	"no clock":              {clock: stub.ClockNone},
	"some threads":          {threads: true},
	"lossless":              {lossless: true},
	"lossless, old":         {lossless: true, machine: oldMachine},
	"small chunks":          {divide: true},
	"lazy":                  {lazy: true, spDelta: true},
	"lazy, unmade":          {lazy: true, unmade: true, spDelta: true},
	"lazy, unmade, old":     {lazy: true, unmade: true, machine: oldMachine},
	"lazy and shared":       {lazy: true, shared: true, spDelta: true},
	"lazy, shared, unmade":  {lazy: true, shared: true, spDelta: true, unmade: true},
	"near thread ID":        {tid: -160},
	"thread ID ahead":       {tid: 16},
}

func untimed(c stub.Clock) func(*tally) uint64 {
	return func(k *tally) uint64 {
		switch c {
		case stub.ClockExit:
			return k.entries
		case stub.ClockNone:
			return k.entries + k.exits
		}
		return 0
	}
}

func TestStubsKeepEveryRegister(t *testing.T) {
	for name, s := range templates {
		t.Run(name, func(t *testing.T) {
			s.chunks = ring.MinChunks
			d := startDriver(t, s)
			d.doDraining("state %d", 1500) // 16 codes: the slow path takes part, the first event's too
			d.do("gate 0")
			d.do("state %d", 20)
			d.do("gate 1")
			if !s.lossless {
				d.do("state %d", 3000) // the pool runs empty: drops
			}
			d.round()
			if n := d.drainer.Totals().Events; n < 20000 {
				t.Errorf("only %d events", n)
			}
		})
	}
}

func TestEveryCallIsRecorded(t *testing.T) {
	for name, s := range templates {
		t.Run(name, func(t *testing.T) {
			s.chunks = 256
			d := startDriver(t, s)
			d.doDraining("calls %d", 100000)
			d.finish(expect{untimed: untimed(s.clock)})
			if len(d.threads) != 1 {
				t.Errorf("%d threads", len(d.threads))
			}
		})
	}
}
