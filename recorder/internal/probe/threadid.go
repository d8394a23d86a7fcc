package probe

import "github.com/callreel/callreel/isa/amd64"

// A program without a C library may have no thread pointer, and nothing in its memory that tells one thread from another. There a
// thread on the program's first stack, which the kernel made and no other thread uses, is the one that recording found there; of
// every other stack's the kernel is asked (gettid), at each event: a stack may be given to another thread at any time, and nothing
// would say so.
//
// What is known of the first stack stands at the end of the gate's page, behind the list of gates. In a forked child all of it is 0,
// so that the kernel is asked on each stack.
const (
	// GateThread is where the ID of the thread on the first stack stands, GateStack where the lowest address of that stack, and
	// GateStackSize how many bytes it has: 8 bytes each, all 0 if nobody is known to be there.
	GateThread    = 4064
	GateStack     = 4072
	GateStackSize = 4080
)

// ThreadIDSyscalls are the numbers of the system calls that code in the arena makes where NoTLS is set, besides SlowSyscalls.
func ThreadIDSyscalls() []uint64 { return []uint64{sysGettid} }

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

// emitThreadID appends the routine that finds the thread's ID, if one is wanted: EAX becomes it, flags are clobbered.
func (c *coder) emitThreadID() {
	if !c.cfg.NoTLS {
		return
	}
	c.Align(64)
	c.routines.threadID = c.PC()
	c.beginRoutine()
	other := c.NewLabel()
	c.Mov(amd64.RAX, amd64.RSP)
	c.SubMem(amd64.RAX, amd64.AtAddr(c.cfg.Gate+GateStack))
	c.CmpMem(amd64.RAX, amd64.AtAddr(c.cfg.Gate+GateStackSize))
	c.Jcc(amd64.CondAE, other)
	c.Load32(amd64.RAX, amd64.AtAddr(c.cfg.Gate+GateThread))
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
