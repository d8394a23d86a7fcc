package amd64

import (
	"fmt"
	"testing"
	"time"

	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// templates are the forms that event code takes.
var templates = map[string]stubSetup{
	"inline":                {},
	"shared":                {shared: true},
	"inline, stack moved":   {spDelta: true},
	"clock at exits only":   {clock: stub.ClockExit},
	"shared, clock at exit": {clock: stub.ClockExit, shared: true},
	"no clock":              {clock: stub.ClockNone},
	"shared, no clock":      {clock: stub.ClockNone, shared: true},
	"taking back":           {min: true},
	"shared, taking back":   {min: true, shared: true},
	"some threads":          {threads: true},
	"shared, some threads":  {threads: true, shared: true},
	"depth":                 {depth: 50},
	"shared, depth":         {depth: 50, shared: true, clock: stub.ClockNone},
	"inside":                {inside: 8},
	"every":                 {every: 1},
	"all filters":           {inside: 8, depth: 50, every: 1, min: true, threads: true},
	"lossless":              {lossless: true},
	"small chunks":          {divide: true},
	"small, taking back":    {divide: true, min: true},
	"small, lossless":       {divide: true, lossless: true},
	"shared and lossless":   {lossless: true, shared: true},
	"asking for the thread": {noTLS: true},
	"shared and asking":     {noTLS: true, shared: true, min: true},
	"by the stack":          {noTLS: true, stack: true},
	"shared, by the stack":  {noTLS: true, stack: true, shared: true, threads: true},
	"by the descriptor":     {noTLS: true, described: true},
}

func TestStubsKeepEveryRegister(t *testing.T) {
	for name, s := range templates {
		t.Run(name, func(t *testing.T) {
			s.chunks = ring.MinChunks
			d := startDriver(t, s)
			d.doDraining("state %d", 3000) // 16 codes: 12 chunks, so the slow path takes part, the first event's too
			d.do("gate 0")
			d.do("state %d", 100)
			d.do("gate 1")
			if !s.lossless {
				d.do("state %d", 4000) // the pool runs empty: drops
			}
			d.round()
			if n := d.drainer.Totals().Events; n < 40000 {
				t.Errorf("only %d events", n)
			}
		})
	}
}

func TestEveryCallIsRecorded(t *testing.T) {
	for name, s := range templates {
		t.Run(name, func(t *testing.T) {
			s.chunks = 256 // room for all, a quarter being kept for exits, however seldom this machine lets the drainer run
			d := startDriver(t, s)
			d.doDraining("calls %d", 200000)
			d.finish(expect{clock: s.clock})
			if len(d.threads) != 1 || d.threads[0].name != "driver" {
				t.Errorf("%d threads, the first named %q", len(d.threads), d.threads[0].name)
			}
		})
	}
}

func TestNothingIsWrittenWhileTheGateIsClosed(t *testing.T) {
	d := startDriver(t, stubSetup{})
	d.do("gate 0")
	d.do("calls 1000")
	d.do("thread idle 1000")
	d.round()
	if sum := d.drainer.Totals(); sum.Events != 0 || sum.Threads != 0 || d.mem.header(ring.HdrRegistered) != 0 {
		t.Errorf("%+v with the gate closed, %d registered", sum, d.mem.header(ring.HdrRegistered))
	}
	if room := d.number("room"); room != 0 {
		t.Errorf("room for %d events was claimed", room)
	}
}

func TestAThreadThatIsOffWritesNothing(t *testing.T) {
	for _, s := range []stubSetup{{threads: true}, {threads: true, shared: true, min: true}} {
		d := startDriver(t, s)
		d.mem.SetOff(d.cmd.Process.Pid, true)
		d.do("state 100")
		d.do("enter")
		d.do("calls 100000")
		d.round()
		if sum := d.drainer.Totals(); sum.Threads != 0 || d.number("room") != 0 {
			t.Errorf("%+v, though the thread is off", sum)
		}
		made := d.number("made")
		d.mem.SetOff(d.cmd.Process.Pid, false)
		d.drainer.Late(d.cmd.Process.Pid)
		d.do("calls 1000")
		d.do("leave")
		d.do("calls 1000")
		d.round()
		if err := d.drainer.Finish(); err != nil {
			t.Fatal(err)
		}
		if sum := d.drainer.Totals(); sum.Events != 4000 || sum.Entries != 2000 || d.number("made") != made+2000 {
			t.Errorf("%+v, want 4000 events", sum)
		}
		if k := d.threads[0]; k.unmatched != 0 || k.abandoned != 0 {
			t.Errorf("%+v", *k)
		}
	}
}

func TestAForkedChildFindsTheGateClosed(t *testing.T) {
	d := startDriver(t, stubSetup{})
	d.do("calls 100")
	if status := d.number("fork 100000"); status != 0 {
		t.Errorf("the child ended with status %#x", status)
	}
	d.do("calls 100")
	d.finish(expect{})
}

func TestAnExitOfACallFromBeforeRegistersNoThread(t *testing.T) {
	d := startDriver(t, stubSetup{})
	d.do("gate 0")
	d.do("enter")
	d.do("gate 1")
	d.do("leave")
	d.round()
	if n := d.mem.header(ring.HdrRegistered); n != 0 {
		t.Errorf("%d threads registered", n)
	}
	if n := d.drainer.Totals().Events; n != 0 {
		t.Errorf("%d events", n)
	}
}

func TestThreadsAreMetUnderTheirNames(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: 256})
	want := map[string]uint64{"driver": 50}
	d.do("calls 50")
	for i := range 40 {
		name := fmt.Sprintf("worker-%d", i)
		want[name] = uint64(10 * (i + 1))
		d.do("thread %s %d", name, want[name])
	}
	d.finish(expect{})
	if len(d.threads) != len(want) {
		t.Fatalf("%d threads, want %d", len(d.threads), len(want))
	}
	for _, s := range d.threads {
		if s.entries != want[s.name] {
			t.Errorf("%q made %d calls, want %d", s.name, s.entries, want[s.name])
		}
	}
}

// An empty pool must cost entries only, each of them counted, and exits of accepted calls must come through.
func TestAnEmptyPoolDropsEntriesAndKeepsExits(t *testing.T) {
	for name, s := range map[string]stubSetup{"inline": {}, "shared": {shared: true}} {
		t.Run(name, func(t *testing.T) {
			s.chunks = ring.MinChunks // 6, and 2 in reserve
			d := startDriver(t, s)
			for range 50 {
				d.do("enter")
			}
			d.do("calls 100000") // more than 6 chunks hold
			for range 20 {
				d.do("leave")
			}
			d.do("calls 1000") // deeper than the mark is not, yet dropped
			for range 30 {
				d.do("leave")
			}
			d.round()
			if s := d.threads[0]; s.unmatched != 0 {
				t.Errorf("%d exits of dropped calls were written", s.unmatched)
			}
			d.do("calls 1000") // the pool has been filled again
			d.finish(expect{drops: true})
			if n := d.threads[0].entries; n < 6*ring.ChunkEvents/2+1000 {
				t.Errorf("only %d calls recorded", n)
			}
		})
	}
}

func TestDroppingGoesOnWithoutEndAndEndsWithRoom(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: ring.MinChunks})
	for range 4 {
		d.do("calls 200000") // the failed claims are counted in 15 bits, which must never run over
		d.round()
		d.do("calls 10")
	}
	d.finish(expect{drops: true})
	if n := d.threads[0].entries; n < 4*5*ring.ChunkEvents/2 {
		t.Errorf("only %d calls recorded", n)
	}
}

// A thread begins with small chunks, goes on with others, and comes back to small ones when there are no others.
func TestChunksGrow(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: 64, divide: true})
	d.do("calls 1")
	if room := d.number("room"); room != ring.SmallEvents-2 {
		t.Errorf("room for %d events in the first chunk, want %d", room, ring.SmallEvents-2)
	}
	d.do("calls %d", ring.SmallFirst*ring.SmallEvents/2)
	if room := d.number("room"); room != ring.ChunkEvents-2 {
		t.Errorf("room for %d events behind %d small chunks, want %d", room, ring.SmallFirst, ring.ChunkEvents-2)
	}
	const large = 27 // of 64, less the reserve, and seven sixteenths
	d.do("calls %d", large*ring.ChunkEvents/2)
	if room := d.number("room"); room >= ring.SmallEvents {
		t.Errorf("room for %d events when no others are left, want a small chunk", room)
	}
	d.round()
	d.do("calls %d", ring.SmallEvents)
	if room := d.number("room"); room < ring.SmallEvents {
		t.Errorf("room for %d events when chunks are free again", room)
	}
	d.finish(expect{})
}

func TestSmallChunksAreStartedOver(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: ring.MinChunks, divide: true})
	for range 20 {
		d.do("calls 200000")
		d.round()
		d.do("calls 10")
	}
	d.finish(expect{drops: true})
}

func TestExitsAreLostOnlyWithTheReserve(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: ring.MinChunks})
	// Every thread takes a chunk of its own; the pool's 6 and the reserve's 2 are soon gone, with calls open.
	for range 3 {
		d.do("enter")
	}
	d.do("calls 100000")
	d.mem.setHeader(ring.HdrReserve, 0)
	d.mem.setHeader(d.slot()+ring.SlotSpare, 0)
	for range 3 {
		d.do("leave")
	}
	d.finish(expect{drops: true, lost: true})
	if n := d.threads[0].lost; n != 3 {
		t.Errorf("%d exits lost, want 3", n)
	}
}

func TestTheSpareRoomBecomesTheChunkOnceThePoolIsFilled(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: ring.MinChunks})
	d.do("enter")
	d.do("enter")
	d.do("calls 100000")
	d.do("leave") // takes a chunk of the reserve
	d.round()
	d.do("calls 100")
	const exits = 1 + 13 // of the second call, and of those that were open when the pool ran empty
	if room := d.number("room"); room > ring.ChunkEvents-200-1 || room < ring.ChunkEvents-200-exits {
		t.Errorf("room for %d events, want %d less some exits in the spare chunk", room, ring.ChunkEvents-200)
	}
	d.do("leave")
	d.finish(expect{drops: true})
}

func TestLosslessWaitsForALiveRecorder(t *testing.T) {
	for name, s := range map[string]stubSetup{"inline": {}, "shared": {shared: true}} {
		t.Run(name, func(t *testing.T) {
			s.chunks, s.lossless = ring.MinChunks, true
			d := startDriver(t, s)
			d.doDraining("crowd 4 300000")
			d.finish(expect{})
		})
	}
}

func TestLosslessDoesNotWaitForADeadRecorder(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: ring.MinChunks, lossless: true})
	d.mem.setHeader(ring.HdrHeartbeat, 1)
	d.mem.setHeader(ring.HdrCloseLimit, 1<<63-1)
	d.do("calls 100000")
	d.finish(expect{drops: true})
	if d.number("isopen") != 1 {
		t.Error("the gate is closed already")
	}
}

func TestAWaitEndsWithTheRecording(t *testing.T) {
	d := startDriver(t, stubSetup{chunks: ring.MinChunks, lossless: true})
	d.mem.setHeader(ring.HdrWaitLimit, 1<<63-1)
	d.send("calls 100000")
	time.Sleep(50 * time.Millisecond)
	if d.drainer.Totals().Events != 0 {
		t.Fatal("drained already")
	}
	d.mem.setHeader(ring.HdrCloseLimit, 1<<63-1)
	d.mem.setHeader(ring.HdrHeartbeat, 1) // it is waiting, and still believes that there is a recorder
	d.mem.setHeader(ring.HdrWaitLimit, 1)
	if a := d.answer(); a != "ok" {
		t.Fatal(a)
	}
	d.finish(expect{drops: true})
}

func TestThreadsOfADeadRecorderCloseTheGate(t *testing.T) {
	for _, lossless := range []bool{false, true} {
		d := startDriver(t, stubSetup{chunks: ring.MinChunks, lossless: lossless})
		d.mem.setHeader(ring.HdrHeartbeat, 1)
		d.do("calls 100000")
		if d.number("isopen") != 0 {
			t.Error("the gate is still open")
		}
		d.round()
		if n := d.drainer.Totals().Dropped; n != 1 {
			t.Errorf("%d entries dropped before the gate was closed, want 1", n)
		}
	}
}
