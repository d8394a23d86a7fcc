package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// threadID appends the loading of the thread's ID into a register, as 32 bits. Flags are clobbered.
func (c *coder) threadID(r amd64.Reg) {
	if !c.cfg.NoTLS {
		c.Load32(r, amd64.AtFS(c.cfg.TIDOffset))
		return
	}
	if r == amd64.RAX {
		c.CallTo(c.routines.threadID)
		return
	}
	c.Mov(r, amd64.RAX)
	c.CallTo(c.routines.threadID)
	c.Xchg(r, amd64.RAX)
}

// What the routine keeps, from its stack pointer on: below what stubs keep, and above what the kernel may write over.
const (
	threadSaveRCX = -112
	threadSaveR11 = -120
)

// emitThreadID appends the routine that finds the thread's ID, if one is wanted: EAX becomes it, flags are clobbered. It is
// looked for as on arm64.
func (c *coder) emitThreadID() {
	if !c.cfg.NoTLS {
		return
	}
	c.Align(64)
	c.routines.threadID = c.PC()
	c.beginRoutine()
	other := c.NewLabel()
	if c.cfg.DescriptorAt != 0 && !c.cfg.Follow {
		none := c.NewLabel()
		c.Load64(amd64.RAX, amd64.AtFS(c.cfg.DescriptorAt))
		c.Test(amd64.RAX, amd64.RAX)
		c.Jcc(amd64.CondE, none)
		c.Load32(amd64.RAX, amd64.At(amd64.RAX, c.cfg.DescriptorID))
		c.Test32(amd64.RAX, amd64.RAX)
		c.Jcc(amd64.CondS, none)
		c.Ret()
		c.Place(none)
	}
	c.Mov(amd64.RAX, amd64.RSP)
	c.SubMem(amd64.RAX, amd64.AtAddr(c.cfg.Gate+stub.GateStack))
	c.CmpMem(amd64.RAX, amd64.AtAddr(c.cfg.Gate+stub.GateStackSize))
	c.Jcc(amd64.CondAE, other)
	c.Load32(amd64.RAX, amd64.AtAddr(c.cfg.Gate+stub.GateThread))
	c.Ret()
	c.Place(other)
	c.Store64(amd64.At(amd64.RSP, threadSaveRCX), amd64.RCX)
	c.Store64(amd64.At(amd64.RSP, threadSaveR11), amd64.R11)
	c.MovImm32(amd64.RAX, sysGettid)
	c.Syscall()
	c.Load64(amd64.RCX, amd64.At(amd64.RSP, threadSaveRCX))
	c.Load64(amd64.R11, amd64.At(amd64.RSP, threadSaveR11))
	c.Ret()
	c.endRoutine()
}
