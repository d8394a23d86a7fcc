package amd64

import (
	"sync/atomic"
	"testing"

	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
)

func startFollowed(t *testing.T, s stubSetup) *driver {
	t.Helper()
	s.follow = true
	d := startDriver(t, s)
	d.mem.SetFollow(true)
	return d
}

func TestAFollowedChildIsRecordedFromItsFirstCallOn(t *testing.T) {
	for name, s := range map[string]stubSetup{"inline": {}, "shared": {shared: true}, "stack moved": {spDelta: true}} {
		t.Run(name, func(t *testing.T) {
			d := startFollowed(t, s)
			d.do("calls 100")
			for range 20 {
				if status := d.number("fork 1000"); status != 1<<8 {
					t.Errorf("status %#x: the gate was not opened", status)
				}
			}
			d.round()
			if n := d.drainer.Totals().Entries; n != 20100 {
				t.Errorf("%d calls of 20,100", n)
			}
			if len(d.threads) != 21 {
				t.Errorf("%d threads", len(d.threads))
			}
			d.mem.SetFollow(false)
			if status := d.number("fork 1000"); status != 0 {
				t.Errorf("status %#x: children aren't followed any more", status)
			}
			d.mem.setHeader(ring.HdrFollow, ring.FollowSandboxed)
			if status := d.number("fork 1000"); status != 0 {
				t.Errorf("status %#x: a child has restricted its system calls", status)
			}
			d.round()
			if n := d.drainer.Totals().Entries; n != 20100 {
				t.Errorf("%d calls of 20,100", n)
			}
		})
	}
}

func TestOpeningAGateKeepsEveryRegister(t *testing.T) {
	for name, s := range map[string]stubSetup{"inline": {}, "shared": {shared: true}, "stack moved": {spDelta: true}} {
		t.Run(name, func(t *testing.T) {
			d := startFollowed(t, s)
			for range 100 {
				d.do("wipe")
				d.do("state 1")
				d.round()
			}
			if n := d.drainer.Totals().Entries; n != 800 {
				t.Errorf("%d entries of 800", n)
			}
			d.mem.SetFollow(false)
			d.do("wipe")
			d.do("state 10")
			if n := d.number("isopen"); n != 0 {
				t.Error("the gate is open")
			}
		})
	}
}

// A child that restricts its system calls closes what it has opened and opens nothing any more. Its parent is recorded on.
func TestAChildsHookClosesItsOwnGates(t *testing.T) {
	d := startFollowed(t, stubSetup{hook: plan.HookPrctl, ids: 1})
	d.do("wipe")
	d.do("calls 10")
	if n := d.number("isopen"); n != 1 {
		t.Fatalf("%d gates are open", n)
	}
	d.do("pin 16 1 0 0")
	d.do("state 1")
	if n := d.number("isopen"); n != 0 {
		t.Error("the gate is open")
	}
	if d.mem.Sandboxed() || !d.mem.FollowEnded() {
		t.Errorf("sandboxed: %v, following ended: %v", d.mem.Sandboxed(), d.mem.FollowEnded())
	}
	d.do("calls 10")
	d.do("wipe") // as in a child of its own
	d.do("calls 10")
	d.do("state 10")
	if n := d.number("isopen"); n != 0 {
		t.Error("a gate was opened")
	}
	d.round()
	if n := d.drainer.Totals().Entries; n != 11 {
		t.Errorf("%d entries of 11", n)
	}
	if n := d.mem.header(ring.HdrInSlow); n != 0 {
		t.Errorf("%d threads are counted in the slow path", n)
	}
}

func TestAnExecWaitsForTheRecorderAndKeepsEveryRegister(t *testing.T) {
	d := startFollowed(t, stubSetup{hook: plan.HookExec, ids: 4})
	var asked, strange atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			seen := d.mem.Execs()
			d.mem.EachExec(func(i, pid, tid int) {
				if pid != d.cmd.Process.Pid || tid != pid {
					strange.Add(1)
				}
				asked.Add(1)
				d.mem.LetExec(i)
			})
			d.mem.WaitExecs(seen, 1e6)
			d.mem.Beat()
		}
	}()
	d.do("state 50")
	close(stop)
	<-done
	if asked.Load() != 200 || strange.Load() != 0 {
		t.Errorf("asked %d times of 200, %d of them by others", asked.Load(), strange.Load())
	}
	d.mem.EachExec(func(i, pid, tid int) { t.Errorf("entry %d is left: process %d, thread %d", i, pid, tid) })
	// Nobody waits for a recorder that doesn't follow, or is dead, or has seen a sandbox.
	before := d.mem.Execs()
	d.mem.SetFollow(false)
	d.do("state 1")
	d.mem.SetFollow(true)
	d.mem.setHeader(ring.HdrSandboxed, 1)
	d.do("state 1")
	d.mem.setHeader(ring.HdrSandboxed, 0)
	if n := d.mem.Execs(); n != before {
		t.Errorf("asked %d times where nobody follows", n-before)
	}
	d.mem.setHeader(ring.HdrHeartbeat, 1)
	d.mem.setHeader(ring.HdrWaitLimit, 1)
	d.do("state 1")
	if n := d.mem.Execs(); n != before+4 {
		t.Errorf("asked a dead recorder %d times", n-before)
	}
}
