package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// States of struct r_debug (<link.h>).
const rtDelete = 2

// maxLoadNaps bounds the waiting besides the clock.
const maxLoadNaps = 5000

// loaderPath is what is done at the function that a dynamic loader calls when libraries come and go: see the one of x86-64.
//
// Registers inside: x9 the number waited for, x10 the counter at the beginning, x11 slot, x12 ring, x13 how many naps are left.
type loaderPath struct {
	*slowPath
	complete, wait, nap, vain, leave, closed, out, bare arm64.Label
}

// emitLoader appends that, and returns its address.
func (c *coder) emitLoader() uint64 {
	c.Align(64)
	addr := c.PC()
	l := &loaderPath{slowPath: &slowPath{coder: c}}
	for _, label := range []*arm64.Label{&l.complete, &l.wait, &l.nap, &l.vain, &l.leave, &l.closed, &l.out, &l.bare} {
		*label = c.NewLabel()
	}
	l.beginFrame()
	l.look()
	l.tell()
	l.await()
	l.Place(l.out)
	l.restoreVectors()
	l.Place(l.bare)
	l.endFrame()
	return addr
}

// look goes on at complete if the process is the one that is recorded, and the loader has completed what it does.
func (l *loaderPath) look() {
	l.loadAt(rRing, l.cfg.Gate+stub.GateOwn)
	l.CmpImm(rRing, stub.GateNever)
	l.BCond(arm64.CondLS, l.bare)
	l.unlessOpen(l.bare)
	l.threadID(x1)
	l.CbzW(x1, l.bare) // no thread has ID 0: the descriptor isn't set up
	l.AddImm(rSlot, rRing, ring.SlotsOff)
	l.AddLSL(rSlot, rSlot, x1, slotShift)
	if l.cfg.LoaderState == 0 {
		return
	}
	l.MovImm(x0, l.cfg.LoaderState)
	l.Load(4, x0, arm64.At(x0, 0))
	l.CbzW(x0, l.complete)
	l.Store(4, x0, l.hdr(ring.HdrLoadKind))
	l.B(l.bare)
}

// tell takes a number, and wakes the recorder.
func (l *loaderPath) tell() {
	l.Place(l.complete)
	l.saveVectors()
	l.count(1)
	l.Dmb()
	l.unlessOpen(l.closed)
	l.Movz(x0, 1, 0)
	l.AddImm(x15, rRing, ring.HdrLoads)
	l.fetchAdd(4, x0, rWord, x15, x2, x3, bothWays)
	l.AddImmW(rWord, rWord, 1)
	l.AddImm(x0, rRing, ring.HdrLoads)
	l.Movz(x1, futexWake, 0)
	l.Movz(x2, 1, 0)
	l.call(sysFutex)
}

// await waits until the recorder has seen to the number, if it is to be waited for. x4 is the time that it has taken.
func (l *loaderPath) await() {
	l.Load(4, x0, l.hdr(ring.HdrLoadKind))
	l.Store(4, zr, l.hdr(ring.HdrLoadKind)) // another namespace's state isn't looked at, see stub.Config.LoaderState
	l.CmpImmW(x0, rtDelete)
	l.BCond(arm64.CondEQ, l.leave)
	l.MovImm(rNaps, maxLoadNaps)
	l.Mrs(rSP, arm64.CNTVCTEL0)
	l.Place(l.wait)
	// The gate first: a child may have no ring.
	l.unlessOpen(l.closed)
	l.ifZero(8, l.hdr(ring.HdrLoadWait), l.leave)
	l.AddImm(x15, rRing, ring.HdrLoadsDone)
	l.LoadAcquire(4, x0, x15)
	l.SubW(x0, x0, rWord) // numbers may begin anew
	l.Tbz(x0, 31, l.leave)
	l.Mrs(x4, arm64.CNTVCTEL0)
	l.Sub(x4, x4, rSP)
	l.Load(8, x15, l.hdr(ring.HdrLoadMost))
	l.Cmp(x4, x15)
	l.BCond(arm64.CondHS, l.vain)
	l.Load(4, x0, l.hdr(ring.HdrLoadsTaken))
	l.SubW(x0, x0, rWord)
	l.Tbz(x0, 31, l.nap)
	l.Load(8, x15, l.hdr(ring.HdrLoadAsk))
	l.Cmp(x4, x15)
	l.BCond(arm64.CondLO, l.nap)
	l.Load(8, x15, l.hdr(ring.HdrHeartbeat))
	l.Cmp(rSP, x15)
	l.BCond(arm64.CondHS, l.vain)
	l.Place(l.nap)
	l.SubImm(rNaps, rNaps, 1)
	l.Tbnz(rNaps, 63, l.vain)
	l.sleep()
	l.B(l.wait)
	l.Place(l.vain)
	l.Store(8, zr, l.hdr(ring.HdrLoadWait))
	l.Place(l.leave)
	l.count(-1)
	l.B(l.out)
	l.Place(l.closed)
	l.loadAt(x0, l.cfg.Gate+stub.GateOwn)
	l.CmpImm(x0, stub.GateNever)
	l.BCond(arm64.CondHI, l.leave) // else it is a child's, which isn't counted
}
