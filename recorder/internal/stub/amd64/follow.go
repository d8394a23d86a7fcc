package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A forked child has the text with its probes, the arenas and the ring memory, which it shares with its parent; but the pages of
// the gates are zero in it (MADV_WIPEONFORK). Where children are followed, the first event of each arena opens that arena's
// gate there, and is written: so a child is recorded from its first call on, with nobody to stop it or to come too late.
//
// It is only opened once the C library's descriptor has the child's own thread ID, which the kernel or the library puts there
// behind the fork: two processes that wrote into one slot would lose each other's events. A process made by a bare system call never
// has it; its gate stays closed.
//
// A child opens the gates of the arenas whose code it runs, one by one, since the list in the ring memory may name arenas by now
// that were mapped in its parent only. Which these are is said behind the first arena's gate, for its hooks.

// whenClosed returns where code goes that finds the gate closed, with RAX, RCX, RDX and the flags saved: to off, or, where
// children are followed, to the opening of a child's gate, and from there to again.
func (c *coder) whenClosed(again uint64, off amd64.Label) amd64.Label {
	if !c.cfg.Follow {
		return off
	}
	l := c.NewLabel()
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(l)
		c.CmpMem64Imm8(amd64.AtAddr(c.cfg.Gate+stub.GateOwn), 0)
		c.Jcc(amd64.CondNE, off)
		c.CallTo(c.routines.follow)
		c.Test(amd64.RAX, amd64.RAX)
		c.Jcc(amd64.CondE, off)
		c.JmpTo(again)
	})
	return l
}

// emitFollow appends the opening of the arena's gate in a forked child, and returns its address. RAX becomes 1 if it is open,
// else 0; RCX, RDX and the flags are clobbered.
func (c *coder) emitFollow() uint64 {
	c.Align(64)
	addr := c.PC()
	no, strange, out := c.NewLabel(), c.NewLabel(), c.NewLabel()
	kept := []amd64.Reg{amd64.RSI, amd64.RDI, amd64.R9, amd64.R11}
	c.beginKeeping(kept)
	c.MovImm64(amd64.R9, c.cfg.Ring)
	c.CmpMem64Imm8(amd64.At(amd64.R9, ring.HdrFollow), stub.FollowOn)
	c.Jcc(amd64.CondNE, no)
	c.MovImm32(amd64.RAX, sysGettid)
	c.Syscall()
	if !c.cfg.NoTLS { // else the ID is the kernel's own
		c.Load32(amd64.RCX, amd64.AtFS(c.cfg.TIDOffset))
		c.Cmp(amd64.RAX, amd64.RCX)
		c.Jcc(amd64.CondNE, strange)
	}
	c.MovImm64(amd64.RDI, c.cfg.Anchor)
	c.MovImm32(amd64.RCX, 1)
	c.LockXadd64(amd64.At(amd64.RDI, stub.GateOpened), amd64.RCX)
	c.MovImm32(amd64.RAX, stub.MaxOpened)
	c.Cmp(amd64.RCX, amd64.RAX)
	c.Jcc(amd64.CondAE, no)
	c.MovImm64(amd64.RSI, c.cfg.Gate)
	c.Store64(amd64.AtIndex(amd64.RDI, amd64.RCX, 8, stub.GateList), amd64.RSI)
	c.Store64Imm(amd64.AtAddr(c.cfg.Gate+stub.GateOwn), stub.GateChild)
	c.Lea(amd64.RDX, amd64.At(amd64.R9, ring.SlotsOff))
	c.Store64(amd64.AtAddr(c.cfg.Gate), amd64.RDX)
	c.MovImm32(amd64.RAX, 1)
	c.Jmp(out)
	c.Place(strange)
	c.IncMem(amd64.AtAddr(c.cfg.Gate + stub.GateStrange))
	c.MovImm32(amd64.RAX, stub.MaxStrange)
	c.CmpMem(amd64.RAX, amd64.AtAddr(c.cfg.Gate+stub.GateStrange))
	c.Jcc(amd64.CondA, no)
	c.Store64Imm(amd64.AtAddr(c.cfg.Gate+stub.GateOwn), stub.GateNever)
	c.Place(no)
	c.MovImm32(amd64.RAX, 0)
	c.Place(out)
	c.returnWith(kept)
	c.endRoutine()
	return addr
}

// closeOpened closes the gates of a child that restricts its own system calls, and lets no child open any from then on: its own
// children are restricted as well. Recording goes on elsewhere.
func (g *seccompPath) closeOpened() {
	g.MovImm64(amd64.R9, g.cfg.Ring)
	g.Store64Imm(g.hdr(ring.HdrFollow), ring.FollowSandboxed)
	g.slotOfThread()
	g.MovImm32(amd64.R12, 1) // it waits without system calls
	g.MovImm64(amd64.RCX, g.cfg.Anchor+stub.GateList)
}
