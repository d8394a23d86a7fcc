package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/plan"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// A thread that registers, names itself and ends within milliseconds is gone before the recorder reads its name in /proc. So the stub at the
// entry of prctl(2), by which C libraries name the thread that calls them (pthread_setname_np, too), leaves the new name in the ring
// memory, where the recorder finds it when the thread has ended. It makes the program's own call first: whether the kernel takes the name,
// and what it makes of it, nobody else knows, and that the program makes the same call then changes nothing.

// nameArgument is where a function by which threads name themselves has the address of the name.
func nameArgument(g plan.Hook) amd64.Reg {
	if g == plan.HookSyscall {
		return amd64.RDX
	}
	return amd64.RSI
}

// emitNames appends what is done where a thread names itself, and returns its address. RAX is the address of the name; it and the flags
// are clobbered.
//
// A thread that hasn't registered yet has its name asked for when it does. One that isn't the thread whose descriptor it uses, in the child
// of vfork(2), say, has no name here. System calls are made as in the slow path: counted, with the gate seen open since, and with all
// signals blocked, so that no handler names the thread, or forks, in between.
//
// Registers inside: R8 slot, R9 ring, R12 thread ID, then where the name goes, R13 address of the name, then its number.
func (c *coder) emitNames() uint64 {
	c.Align(64)
	addr := c.PC()
	n := &slowPath{coder: c, again: c.NewLabel()}
	unblock, leave, out := c.NewLabel(), c.NewLabel(), c.NewLabel()
	kept := []amd64.Reg{amd64.RCX, amd64.RDX, amd64.RSI, amd64.RDI, amd64.R8, amd64.R9, amd64.R10, amd64.R11, amd64.R12, amd64.R13}
	c.beginKeeping(kept)
	inside := 0 // how far the stack pointer is below the CFA
	if c.unwind != nil {
		inside = c.unwind.depth
	}
	c.Mov(amd64.R13, amd64.RAX)
	closed := c.whenClosed(c.PC(), out)
	c.Load64(amd64.RDX, amd64.AtAddr(c.cfg.Gate))
	c.Test(amd64.RDX, amd64.RDX)
	c.Jcc(amd64.CondLE, closed)
	c.threadID(amd64.RAX)
	c.Test(amd64.RAX, amd64.RAX) // no thread has ID 0: the descriptor isn't set up
	c.Jcc(amd64.CondE, out)
	c.Mov32(amd64.R12, amd64.RAX)
	c.Shl32Imm(amd64.RAX, 3)
	c.Lea(amd64.R8, amd64.AtIndex(amd64.RDX, amd64.RAX, 8, 0))
	c.Lea(amd64.R9, amd64.At(amd64.RDX, -ring.SlotsOff))
	c.CmpMem32Imm8(n.slot(ring.SlotRegistered), 1)
	c.Jcc(amd64.CondNE, out)
	n.count(1)
	c.CmpMem64Imm8(amd64.AtAddr(c.cfg.Gate), 0)
	c.Jcc(amd64.CondLE, leave)
	n.blockSignals(c.routines.mask)
	c.MovImm32(amd64.RAX, sysGettid)
	c.Syscall()
	c.Cmp32(amd64.RAX, amd64.R12)
	c.Jcc(amd64.CondNE, unblock)
	n.prctl(prSetName, amd64.R13)
	c.Test(amd64.RAX, amd64.RAX)
	c.Jcc(amd64.CondNE, unblock)
	n.keepName()
	c.Place(unblock)
	n.restoreMask()
	c.Place(leave)
	n.count(-1)
	c.Place(out)
	c.returnWith(kept)
	c.below(inside)
	c.flush()
	c.endRoutine()
	return addr
}

// prctl makes that system call. Besides RAX the registers are clobbered that arguments and the call itself take.
func (s *slowPath) prctl(option uint32, arg amd64.Reg) {
	s.MovImm32(amd64.RAX, sysPrctl)
	s.MovImm32(amd64.RDI, option)
	s.Mov(amd64.RSI, arg)
	s.Syscall()
}

// keepName puts the name of thread R12 where the recorder looks for it. While it changes there is no number behind it.
func (s *slowPath) keepName() {
	last := amd64.At(amd64.R12, ring.NameSize-4) // four bytes of which the upper one is the number
	s.ShlImm(amd64.R12, ring.NameShift)
	s.Lea(amd64.R12, amd64.AtIndex(amd64.R9, amd64.R12, 1, ring.NamesOff))
	s.Load32(amd64.R13, last)
	s.ShrImm(amd64.R13, 24)
	s.Lea(amd64.R13, amd64.At(amd64.R13, 1))
	s.And32Imm(amd64.R13, 127)
	s.Lea(amd64.R13, amd64.At(amd64.R13, 128)) // and not 0
	s.ShlImm(amd64.R13, 24)
	s.Store32Imm(last, 0)
	s.prctl(prGetName, amd64.R12)
	s.Load32(amd64.RCX, last)
	s.Or(amd64.RCX, amd64.R13)
	s.Store32(last, amd64.RCX)
	s.Store32Imm(s.hdr(ring.HdrNamed), 1)
}
