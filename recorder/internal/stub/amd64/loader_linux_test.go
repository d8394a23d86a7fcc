package amd64

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// ofLoader returns a driver whose functions are the loader's.
func ofLoader(t *testing.T, s stubSetup) *driver {
	t.Helper()
	s.hook, s.ids = plan.HookLoader, 4
	d := startDriver(t, s)
	d.mem.LetLoadsWait(true)
	d.do("gate 1")
	return d
}

func TestALoadWaitsForTheRecorderAndKeepsEveryRegister(t *testing.T) {
	for name, s := range map[string]stubSetup{"": {}, "by the kernel": {noTLS: true}, "by the descriptor": {noTLS: true, described: true}} {
		t.Run(name, func(t *testing.T) { loadsWait(t, s) })
	}
}

func loadsWait(t *testing.T, s stubSetup) {
	d := ofLoader(t, s)
	d.mem.setHeader(ring.HdrLoadAsk, 1<<62)
	d.mem.setHeader(ring.HdrLoadMost, 1<<62)
	var over atomic.Bool
	done := make(chan struct{})
	answered := uint32(0)
	go func() {
		defer close(done)
		for !over.Load() {
			if n := d.mem.Loads(); n != answered {
				d.mem.TakeLoads(n)
				answered = n
				d.mem.EndLoads(n)
			}
			d.mem.WaitLoads(answered, time.Millisecond)
		}
	}()
	d.do("state 50")
	over.Store(true)
	<-done
	if answered != 200 {
		t.Errorf("told of %d loads of 200", answered)
	}
	if n := d.mem.header(ring.HdrInSlow); n != 0 {
		t.Errorf("%d threads are counted in the slow path", n)
	}
}

// Who waits in vain doesn't wait again, and a number that is over needs no answer.
func TestALoadDoesNotWaitForARecorderThatIsSilent(t *testing.T) {
	const most = 1 << 24 // ticks
	for name, prepare := range map[string]func(d *driver){
		"silent": func(d *driver) { d.mem.setHeader(ring.HdrHeartbeat, 1) },
		"at it":  func(d *driver) { d.mem.TakeLoads(1 << 30) },
		"alive":  func(d *driver) { d.mem.setHeader(ring.HdrHeartbeat, 1<<63) },
	} {
		t.Run(name, func(t *testing.T) {
			d := ofLoader(t, stubSetup{})
			d.mem.setHeader(ring.HdrLoadAsk, most/16)
			d.mem.setHeader(ring.HdrLoadMost, most)
			prepare(d)
			d.do("state 5")
			if d.mem.header(ring.HdrLoadWait) != 0 {
				t.Error("the next would wait, too")
			}
			if n := d.mem.header(ring.HdrInSlow); n != 0 || d.mem.Loads() != 20 {
				t.Errorf("%d threads are counted in the slow path, told %d times of 20", n, d.mem.Loads())
			}
		})
	}
}

// What was unloaded is told, and waited for by nobody; nor is anything where the gate is closed, as in a child.
func TestALoadThatIsNoneWaitsForNobody(t *testing.T) {
	d := ofLoader(t, stubSetup{})
	d.mem.setHeader(ring.HdrLoadAsk, 1<<62)
	d.mem.setHeader(ring.HdrLoadMost, 1<<62)
	d.mem.EndLoads(3) // but the first
	d.mem.setHeader(ring.HdrLoadKind, rtDelete)
	d.do("state 1")
	if n := d.mem.Loads(); n != 4 {
		t.Errorf("told of %d of 4", n)
	}
	d.do("wipe")
	d.do("state 1")
	if n := d.mem.Loads(); n != 4 {
		t.Errorf("told of %d where the gate is closed", n-4)
	}
}

// The loader of this machine, of which nothing else is probed.
func TestTheLoaderHasASiteForLoads(t *testing.T) {
	im := realImage(t, "ld-linux")
	im.Loader = true
	found := false
	for _, f := range planImage(t, im) {
		if f.Tier != plan.TierNone {
			t.Errorf("%s is probed", f.Name)
		}
		if f.Hook == plan.HookLoader {
			found = len(f.HookSites()) == 1
		}
	}
	if !found {
		t.Error("none")
	}
}
