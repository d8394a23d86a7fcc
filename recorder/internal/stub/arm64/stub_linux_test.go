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
	"asking for the thread": {noTLS: true},
	"asking, SVE":           {noTLS: true, machine: smeMachine, shared: true},
	"asking, streaming":     {noTLS: true, machine: streaming},
	"by the stack":          {noTLS: true, stack: true, machine: oldMachine},
	"shared, by the stack":  {noTLS: true, stack: true, shared: true, threads: true},
	"by the descriptor":     {noTLS: true, described: true},
	"described, shared":     {noTLS: true, described: true, shared: true, machine: oldMachine},
	"depth":                 {depth: 50},
	"depth, old, shared":    {depth: 50, shared: true, machine: oldMachine},
	"inside":                {inside: 8},
	"every":                 {every: 1, spDelta: true, alive: true},
	"all filters":           {inside: 8, depth: 50, every: 1, min: true, threads: true},
	"all filters, shared":   {inside: 8, depth: 50, every: 1, min: true, threads: true, shared: true, noTLS: true},
	"taking back":           {min: true},
	"taking back, old":      {min: true, machine: oldMachine},
	"taking back, shared":   {min: true, shared: true, alive: true},
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

// some are the templates that differ in how they claim and call.
var some = []string{"inline", "inline, old processor", "shared", "SVE and SME", "lazy, unmade, old", "small chunks"}

func TestThreadsAndSignalsLoseNothing(t *testing.T) {
	for _, name := range some {
		t.Run(name, func(t *testing.T) {
			s := templates[name]
			s.chunks = 512
			d := startDriver(t, s)
			d.do("alarm 300")
			d.doDraining("threads %d %d", 8, 10000)
			d.doDraining("calls %d", 50000)
			d.do("alarm 0")
			d.finish(expect{signals: true})
			if len(d.threads) != 9 {
				t.Errorf("%d threads", len(d.threads))
			}
		})
	}
}

// With the emulator stepping a signal may come between any two instructions.
func TestASignalMayComeAtEveryInstruction(t *testing.T) {
	for _, m := range []machine{lseMachine, oldMachine} {
		m.singleStepping = true
		d := startDriver(t, stubSetup{machine: m, chunks: 256, divide: true})
		d.do("alarm 100")
		d.doDraining("calls %d", 30000)
		d.do("alarm 0")
		d.finish(expect{signals: true})
	}
}

// An empty pool must cost entries only, each of them counted, and exits of accepted calls must come through.
func TestAnEmptyPoolDropsEntriesAndKeepsExits(t *testing.T) {
	for _, name := range some {
		t.Run(name, func(t *testing.T) {
			s := templates[name]
			s.chunks = ring.MinChunks
			d := startDriver(t, s)
			d.do("calls %d", 100000)
			d.round()
			d.do("calls %d", 1000)
			d.do("threads %d %d", 4, 30000)
			d.finish(expect{drops: true})
			if d.drainer.Totals().Dropped == 0 {
				t.Error("nothing was dropped")
			}
		})
	}
}

func TestALosslessThreadWaits(t *testing.T) {
	for _, name := range []string{"lossless", "lossless, old"} {
		t.Run(name, func(t *testing.T) {
			s := templates[name]
			s.chunks = ring.MinChunks
			d := startDriver(t, s)
			d.doDraining("threads %d %d", 4, 40000)
			d.finish(expect{})
		})
	}
}

func TestNothingIsWrittenWhileItIsOff(t *testing.T) {
	for _, shared := range []bool{false, true} {
		d := startDriver(t, stubSetup{off: true, shared: shared})
		d.do("state 100")
		d.do("calls 1000")
		d.round()
		if sum := d.drainer.Totals(); sum.Events != 0 || sum.Threads != 0 {
			t.Errorf("%+v with all events switched off", sum)
		}
		d = startDriver(t, stubSetup{shared: shared})
		d.do("gate 0")
		d.do("calls 1000")
		d.do("gate 1")
		d.mem.SetPaused(true)
		d.do("state 100")
		d.do("calls 1000")
		d.round()
		if sum := d.drainer.Totals(); sum.Events != 0 || sum.Threads != 0 {
			t.Errorf("%+v with the gate closed, or paused", sum)
		}
	}
}

// While threads call them entries are switched off and on at any moment. What is on when it is called is recorded, and what is recorded ends.
func TestEntriesAreSwitchedWhileThreadsCall(t *testing.T) {
	for _, name := range []string{"inline", "shared", "lazy", "lazy, unmade", "lazy and shared", "lazy, shared, unmade", "all filters"} {
		t.Run(name, func(t *testing.T) {
			s := templates[name]
			s.chunks = 512
			d := startDriver(t, s)
			d.doDraining("flip %d %d", 3, 20000)
			switched := d.drainer.Totals().Entries
			if made := d.made(); switched == 0 || switched >= made {
				t.Errorf("%d entries of %d calls", switched, made)
			}
			d.doDraining("calls %d", 5000)
			if n := d.drainer.Totals().Entries - switched; n != 5000 {
				t.Errorf("%d entries of 5000 calls, with all on", n)
			}
			if err := d.drainer.Finish(); err != nil {
				t.Fatal(err)
			}
			if sum := d.drainer.Totals(); sum.Torn+sum.Dropped != 0 {
				t.Errorf("%+v", sum)
			}
			for _, k := range d.threads {
				if k.unknown != 0 || k.abandoned+uint64(len(k.open)) != 0 {
					t.Errorf("%s: %d unknown, %d and %d without an exit", k.name, k.unknown, k.abandoned, len(k.open))
				}
			}
		})
	}
}

func TestFunctionsAskForTheirProbes(t *testing.T) {
	for _, s := range []stubSetup{{lazy: true, unmade: true}, {lazy: true, unmade: true, shared: true}, {lazy: true, unmade: true, machine: oldMachine}} {
		s.ids = 100
		d := startDriver(t, s)
		d.do("once %d", 2*(70-1))
		d.do("once %d", 2*(33-1))
		d.do("once %d", 2*(70-1))
		if n := d.header(ring.HdrAsked); n != 2 {
			t.Errorf("asked %d times", n)
		}
		for id := 1; id <= s.ids; id++ {
			if asked := d.raw[ring.AskedOff+id/8]>>(id%8)&1 != 0; asked != (id == 70 || id == 33) {
				t.Errorf("function %d: %v", id, asked)
			}
		}
		d.round()
		if n := d.drainer.Totals().Events; n != 3 {
			t.Errorf("%d events", n)
		}
	}
}

func TestAThreadThatDropsWithoutARecorderShutsTheGate(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: ring.MinChunks})
	d.do("calls %d", 100000)
	d.round()
	dropped := d.drainer.Totals().Dropped
	d.setHeader(ring.HdrCloseLimit, 0)
	d.setHeader(ring.HdrHeartbeat, 0)
	d.do("calls %d", 100000)
	if got := d.header(ring.SlotsOff + d.cmd.Process.Pid*ring.SlotSize + ring.SlotDropped); dropped == 0 || got > dropped+4000 {
		t.Errorf("%d dropped, then %d", dropped, got)
	}
}
