package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A forked child has the text with its probes, the arenas and the ring memory, which it shares with its parent; but the pages of the gates are
// zero in it (MADV_WIPEONFORK). Where children are followed, the first event of each arena opens that arena's gate there, and is written. See
// the same of x86-64 for when that is done.

// whenClosed returns where code goes that finds the gate closed: to off, or, where children are followed, to the opening of a child's gate,
// and from there to again. x16 and x17 are clobbered there.
func (c *coder) whenClosed(again uint64, off arm64.Label) arm64.Label {
	if !c.cfg.Follow {
		return off
	}
	l := c.NewLabel()
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(l)
		c.loadAt(x16, c.cfg.Gate+stub.GateOwn)
		c.Cbnz(x16, off)
		c.callOut(c.routines.follow) // x16 becomes 1 if the gate is open
		c.Cbz(x16, off)
		c.BTo(again)
	})
	return l
}

// emitFollow appends the opening of the arena's gate in a forked child, and returns its address. x16 becomes 1 if it is open, else 0.
func (c *coder) emitFollow() uint64 {
	c.Align(64)
	addr := c.PC()
	s := &slowPath{coder: c}
	no, strange, out, bare := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	s.beginFrame()
	c.Movz(x16, 0, 0)
	c.MovImm(rRing, c.cfg.Ring)
	c.Load(8, x15, s.hdr(ring.HdrFollow))
	c.CmpImm(x15, stub.FollowOn)
	c.BCond(arm64.CondNE, bare)
	s.saveVectors()
	c.call(sysGettid)
	c.MovW(x4, x0)
	if !c.cfg.NoTLS { // else the ID is the kernel's own
		c.threadID(x1)
		c.CmpW(x1, x4)
		c.BCond(arm64.CondNE, strange)
	}
	c.MovImm(x5, c.cfg.Anchor)
	c.AddImm(x15, x5, stub.GateOpened)
	c.Movz(x0, 1, 0)
	c.fetchAdd(8, x0, x1, x15, x2, x3, arm64.Order{})
	c.CmpImm(x1, stub.MaxOpened)
	c.BCond(arm64.CondHS, no)
	c.MovImm(x6, c.cfg.Gate)
	c.AddLSL(x15, x5, x1, 3)
	c.Store(8, x6, arm64.At(x15, stub.GateList))
	c.Movz(x0, stub.GateChild, 0)
	c.Store(8, x0, arm64.At(x6, stub.GateOwn))
	c.MovImm(x0, ring.SlotsOff|GateTag)
	c.Add(x0, x0, rRing)
	c.Store(8, x0, arm64.At(x6, 0))
	c.Movz(x16, 1, 0)
	c.B(out)
	c.Place(strange)
	c.MovImm(x6, c.cfg.Gate)
	c.Load(8, x0, arm64.At(x6, stub.GateStrange))
	c.AddImm(x0, x0, 1)
	c.Store(8, x0, arm64.At(x6, stub.GateStrange))
	c.CmpImm(x0, stub.MaxStrange)
	c.BCond(arm64.CondLO, no)
	c.Movz(x0, stub.GateNever, 0)
	c.Store(8, x0, arm64.At(x6, stub.GateOwn))
	c.Place(no)
	c.Movz(x16, 0, 0)
	c.Place(out)
	s.restoreVectors()
	c.Place(bare)
	s.endFrame()
	return addr
}

// closeOpened closes the gates of a child that restricts its own system calls, and lets no child open any from then on: its own children are
// restricted as well. Recording goes on elsewhere.
func (g *seccompPath) closeOpened() {
	g.MovImm(rRing, g.cfg.Ring)
	g.Movz(x0, ring.FollowSandboxed, 0)
	g.Store(8, x0, g.hdr(ring.HdrFollow))
	g.slotOfThread()
	g.Movz(rTo, 1, 0) // it waits without system calls
	g.MovImm(x4, g.cfg.Anchor+stub.GateList)
}

// maxExecNaps bounds the waiting, to some seconds.
const maxExecNaps = 20000

// emitExec appends the asking of a thread that is about to replace its program, and the waiting, and returns its address.
//
// Registers inside: x11 entry, x12 ring, x13 what is left of its patience, x14 thread.
func (c *coder) emitExec() uint64 {
	c.Align(64)
	addr := c.PC()
	e := &slowPath{coder: c}
	wait, done, out, bare := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	following := func(no arm64.Label) {
		c.Load(8, x15, e.hdr(ring.HdrFollow))
		c.CmpImm(x15, stub.FollowOn)
		c.BCond(arm64.CondNE, no)
	}
	e.beginFrame()
	c.MovImm(rRing, c.cfg.Ring)
	following(bare)
	e.unlessZero(8, e.hdr(ring.HdrSandboxed), bare)
	e.saveVectors()
	c.call(sysGettid)
	c.MovW(rTo, x0)
	c.call(sysGetpid)
	c.MovW(rNaps, x0)
	c.Movz(x0, 1, 0)
	c.AddImm(x15, rRing, ring.HdrExecs)
	c.fetchAdd(8, x0, x4, x15, x2, x3, bothWays)
	c.AndImm(x4, x4, ring.ExecSlots-1)
	c.AddImm(rSlot, rRing, ring.ExecsOff)
	c.AddLSL(rSlot, rSlot, x4, ring.ExecShift)
	e.unlessZero(4, e.slot(ring.ExecState), out) // so many at once
	c.Store(4, rTo, e.slot(ring.ExecTID))
	c.Store(4, rNaps, e.slot(ring.ExecPID))
	c.Movz(x0, ring.ExecAsked, 0)
	e.storeRelease(4, x0, rSlot, ring.ExecState)
	c.AddImm(x0, rRing, ring.HdrExecs)
	c.Movz(x1, futexWake, 0)
	c.Movz(x2, 1, 0)
	c.call(sysFutex)
	c.MovImm(rNaps, maxExecNaps)
	c.Place(wait)
	c.AddImm(x15, rSlot, ring.ExecState)
	c.LoadAcquire(4, x0, x15)
	c.CmpImmW(x0, ring.ExecAsked)
	c.BCond(arm64.CondNE, done)
	following(done)
	e.heartbeat(ring.HdrWaitLimit)
	c.BCond(arm64.CondHI, done)
	c.SubImm(rNaps, rNaps, 1)
	c.Tbnz(rNaps, 63, done)
	c.sleep()
	c.B(wait)
	c.Place(done)
	c.Store(4, zr, e.slot(ring.ExecState))
	c.Place(out)
	e.restoreVectors()
	c.Place(bare)
	e.endFrame()
	return addr
}
