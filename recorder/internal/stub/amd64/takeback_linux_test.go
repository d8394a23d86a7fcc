package amd64

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/callreel/callreel/recorder/internal/ring"
)

const never = 1 << 60 // ticks that no call takes

// startTaking starts a driver whose exits take back the entries of calls shorter than min, or, with a drainer that leaves out those of
// less than leaves.
func startTaking(t *testing.T, s stubSetup, min, leaves uint64) *driver {
	t.Helper()
	s.min = true
	d := startDriver(t, s)
	d.mem.SetMin(min)
	d.drainer.Min, d.drainer.TakesBack = leaves, true
	return d
}

func TestTakingBackKeepsEveryRegister(t *testing.T) {
	for name, s := range map[string]stubSetup{"inline": {}, "shared": {shared: true}} {
		t.Run(name, func(t *testing.T) {
			d := startTaking(t, s, never, never)
			d.do("state 1000")
			if room := d.number("room"); room != ring.ChunkEvents {
				t.Errorf("room for %d events, want %d", room, ring.ChunkEvents)
			}
			d.do("calls 100000")
			d.finishTaking(0, 0)
		})
	}
}

// finishTaking drains everything and holds the number of calls recorded against what there must and may be.
func (d *driver) finishTaking(must, may uint64) {
	d.t.Helper()
	d.round()
	if err := d.drainer.Finish(); err != nil {
		d.t.Fatal(err)
	}
	sum := d.drainer.Totals()
	if sum.Entries < must || sum.Entries > may || sum.Events != 2*sum.Entries {
		d.t.Errorf("%d calls in %d events, want %d to %d", sum.Entries, sum.Events, must, may)
	}
	if sum.Torn != 0 || sum.Dropped != 0 || sum.LostExits != 0 {
		d.t.Errorf("%+v", sum)
	}
	for _, s := range d.threads {
		if s.unknown != 0 || s.abandoned != 0 || s.unmatched != 0 || s.untimed != 0 || s.backward != 0 || len(s.open) != 0 {
			d.t.Errorf("%+v", *s)
		}
	}
}

func TestJustTheLongCallsAreKept(t *testing.T) {
	const min = 200_000 // ticks
	for name, c := range map[string]struct {
		setup stubSetup
		storm bool
	}{
		"inline":   {stubSetup{}, false},
		"shared":   {stubSetup{shared: true}, false},
		"signals":  {stubSetup{shared: true}, true},
		"lossless": {stubSetup{chunks: 16, lossless: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := startTaking(t, c.setup, min, min)
			d.do("timed %d 300", min)
			if c.storm {
				d.do("storm 100")
			}
			d.doDraining("crowd 4 20000")
			d.do("storm 0")
			if c.setup.lossless { // exits that can't look back
				d.mem.SetMin(0)
				d.doDraining("crowd 4 20000")
			}
			must, may := uint64(d.number("must")), uint64(d.number("may"))
			if must < 40 {
				t.Errorf("only %d calls took so long", must)
			}
			d.finishTaking(must, may)
			t.Logf("%d to %d of %d calls", must, may, d.number("made"))
		})
	}
}

// A signal between any two instructions of a call that is taken back, whose handler makes calls that aren't. Then what there is is
// drained, and another thread makes calls in the chunks that have become free by that.
func TestASignalMayComeWhileACallIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		setup stubSetup
		left  int // events of room before the call, or one more
		calls int // of the handler
		crowd int // and of the other thread
		step  int
	}{
		{"with room", stubSetup{}, 100, 3, 0, 1},
		{"shared", stubSetup{shared: true}, 100, 3, 0, 1},
		{"handler fills the chunk", stubSetup{}, 3, 3, 0, 1},
		{"the chunk becomes another thread's", stubSetup{chunks: 12}, 50, ring.ChunkEvents, 2 * ring.ChunkEvents, 1},
		{"and back again", stubSetup{chunks: ring.MinChunks, lossless: true}, 50, 6 * ring.ChunkEvents, 200, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			runtime.LockOSThread() // to the tracer
			defer runtime.UnlockOSThread()
			d := startTaking(t, c.setup, 0, 1)
			d.do("calls 10")
			s := d.seize()
			s.lossless = c.setup.lossless
			points, made := uint64(0), 10
			for n := 0; ; n += c.step {
				d.mem.SetMin(0)
				before := d.number("made")
				d.do("fill %d", c.left)
				made += d.number("made") - before
				d.mem.SetMin(never)
				within := s.runStopping(n, c.calls, c.crowd)
				if !within {
					break
				}
				made += c.calls + c.crowd
				points++
			}
			s.check(s.release())
			if points < 80/uint64(c.step) {
				t.Errorf("only %d instructions were interrupted", points)
			}
			d.finishTaking(uint64(made), uint64(made)+points)
			t.Logf("interrupted at %d instructions; %d calls kept nonetheless", points, int(d.drainer.Totals().Entries)-made)
		})
	}
}

// whileDraining does something with rounds of draining meanwhile, and two behind it.
func (d *driver) whileDraining(f func()) {
	d.t.Helper()
	enough, done := make(chan struct{}), make(chan error)
	go func() {
		for {
			_, err := d.drainer.Round()
			select {
			case <-enough:
				done <- err
				return
			default:
			}
			if err != nil {
				<-enough
				done <- err
				return
			}
		}
	}()
	f()
	close(enough)
	if err := <-done; err != nil {
		d.t.Fatal(err)
	}
	d.round()
}

// endThreads gives back what belongs to threads that have ended.
func (d *driver) endThreads() {
	d.t.Helper()
	for _, tid := range slices.Collect(d.drainer.Threads) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%d", d.cmd.Process.Pid, tid)); err == nil {
			continue
		}
		if err := d.drainer.End(tid); err != nil {
			d.t.Fatal(err)
		}
	}
}

// runStopping is run with a handler whose calls are kept, and that stops for draining and then lets a thread make so many calls.
func (s *stepper) runStopping(n, calls, crowd int) (within bool) {
	s.t.Helper()
	s.send("one %d %d", calls, crowd)
	s.stopped()
	if within = s.stepInto(n); within {
		s.mem.SetMin(0)
		s.round()
		s.check(s.cont(true))
		s.whileDraining(s.stopped)
		s.endThreads()
		s.check(s.cont(false))
		if s.lossless {
			s.whileDraining(s.stopped)
		} else { // so that the thread's calls are where the stub goes on
			s.stopped()
		}
		s.mem.SetMin(never)
	}
	s.check(s.cont(false))
	if a := s.answer(); a != "ok" {
		s.t.Fatal(a)
	}
	return within
}

// The same with a handler that doesn't come back: what it has made is there, and draining goes on.
func TestAHandlerMayLeaveWhileACallIsTakenBack(t *testing.T) {
	runtime.LockOSThread() // to the tracer
	defer runtime.UnlockOSThread()
	for first := 0; ; first += 5 {
		d := startTaking(t, stubSetup{}, 0, 1)
		d.do("calls 10")
		d.do("escape")
		s := d.seize()
		d.mem.SetMin(never)
		within := s.run(first, 3, func() { d.mem.SetMin(0) })
		s.check(s.release())
		if !within {
			return
		}
		d.do("calls 5000") // two chunks and more
		d.round()
		made := uint64(d.number("made"))
		if err := d.drainer.Finish(); err != nil {
			t.Fatal(err)
		}
		sum := d.drainer.Totals()
		if sum.Entries < made || sum.Entries > made+1 || sum.Torn > 1 || sum.Dropped != 0 {
			t.Errorf("after %d instructions: %+v of %d calls", first, sum, made)
		}
		for _, k := range d.threads {
			if k.unknown != 0 || k.unmatched != 0 || k.abandoned > 1 || len(k.open) != 0 {
				t.Errorf("after %d instructions: %+v", first, *k)
			}
		}
	}
}
