package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// nameArgument is where a function by which threads name themselves has the address of the name.
func nameArgument(g plan.Hook) isa.Reg {
	if g == plan.HookSyscall {
		return x2
	}
	return x1
}

// emitNames appends what is done where a thread names itself, and returns its address. x16 is the address of the name. See the same of x86-64.
//
// Registers inside: x9 the thread ID, x10 the name's address, x11 slot, x12 ring, x13 the name's number, x14 where the name goes.
func (c *coder) emitNames() uint64 {
	c.Align(64)
	addr := c.PC()
	n := &slowPath{coder: c, again: c.NewLabel()}
	unblock, leave, out := c.NewLabel(), c.NewLabel(), c.NewLabel()
	n.beginFrame()
	c.Mov(rSP, x16)
	again := c.PC()
	c.loadAt(x0, c.cfg.Gate)
	c.Tbz(x0, gateOpen, c.whenClosed(again, out))
	c.threadID(rWord)
	c.CbzW(rWord, out) // no thread has ID 0: the descriptor isn't set up
	c.AndImm(x0, x0, GateTag-1)
	c.AddLSL(rSlot, x0, rWord, slotShift)
	c.SubImm(rRing, x0, ring.SlotsOff)
	c.Load(4, x15, n.slot(ring.SlotRegistered))
	c.CmpImmW(x15, 1)
	c.BCond(arm64.CondNE, out)
	n.saveVectors()
	n.count(1)
	c.Dmb()
	n.unlessOpen(leave)
	n.blockSignals()
	c.call(sysGettid)
	c.CmpW(x0, rWord)
	c.BCond(arm64.CondNE, unblock)
	n.prctl(prSetName, rSP)
	c.Cbnz(x0, unblock)
	n.keepName()
	c.Place(unblock)
	n.restoreMask()
	c.Place(leave)
	n.count(-1)
	n.restoreVectors()
	c.B(out)
	c.flush()
	c.Place(out)
	n.endFrame()
	return addr
}

// prctl makes that system call.
func (s *slowPath) prctl(option uint16, arg isa.Reg) {
	s.Movz(x0, option, 0)
	s.Mov(x1, arg)
	s.call(sysPrctl)
}

// keepName puts the thread's name where the recorder looks for it. While it changes there is no number behind it: a sequence lock, see
// docs/design/ring-protocol.md.
func (s *slowPath) keepName() {
	last := arm64.At(rTo, ring.NameSize-4) // four bytes of which the upper one is the number
	s.MovImm(rTo, ring.NamesOff)
	s.Add(rTo, rTo, rRing)
	s.AddLSL(rTo, rTo, rWord, ring.NameShift)
	s.Load(4, rNaps, last)
	s.LsrImm(rNaps, rNaps, 24)
	s.AddImm(rNaps, rNaps, 1)
	s.OrrImm(rNaps, rNaps, 128) // and not 0
	s.AndImm(rNaps, rNaps, 255)
	s.Store(4, zr, last)
	s.DmbStore()
	s.prctl(prGetName, rTo)
	s.Load(4, x1, last)
	s.OrrLSL(x1, x1, rNaps, 24)
	s.storeRelease(4, x1, rTo, ring.NameSize-4)
	s.Movz(x1, 1, 0)
	s.Store(4, x1, s.hdr(ring.HdrNamed))
}
