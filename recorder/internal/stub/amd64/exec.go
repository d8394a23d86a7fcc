package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Where children are followed, the program that a process is replaced by is recorded as well. So a thread that is about to call
// execve(2) asks the recorder first to be awaited, and waits until it is, or until it is clear that nobody will. It may be one in
// the child of vfork(2), with its parent's thread descriptor, of which nothing is used here.

// maxExecNaps bounds the waiting, to some seconds.
const maxExecNaps = 20000

// emitExec appends the asking and waiting, and returns its address. RAX and flags are clobbered. napAt is that of the time of a nap.
//
// Registers inside: R8 entry, R9 ring, R12 thread, R13 what is left of its patience.
func (c *coder) emitExec(napAt uint64) uint64 {
	c.Align(64)
	addr := c.PC()
	e := &slowPath{coder: c}
	wait, done, out := c.NewLabel(), c.NewLabel(), c.NewLabel()
	kept := []amd64.Reg{amd64.RCX, amd64.RDX, amd64.RSI, amd64.RDI, amd64.R8, amd64.R9, amd64.R10, amd64.R11, amd64.R12, amd64.R13}
	c.beginKeeping(kept)
	c.MovImm64(amd64.R9, c.cfg.Ring)
	c.CmpMem64Imm8(e.hdr(ring.HdrFollow), stub.FollowOn)
	c.Jcc(amd64.CondNE, out)
	c.CmpMem64Imm8(e.hdr(ring.HdrSandboxed), 0)
	c.Jcc(amd64.CondNE, out)
	c.MovImm32(amd64.RAX, sysGettid)
	c.Syscall()
	c.Mov(amd64.R12, amd64.RAX)
	c.MovImm32(amd64.RAX, sysGetpid)
	c.Syscall()
	c.Mov(amd64.R13, amd64.RAX)
	c.MovImm32(amd64.RCX, 1)
	c.LockXadd64(e.hdr(ring.HdrExecs), amd64.RCX)
	c.And32Imm(amd64.RCX, ring.ExecSlots-1)
	c.Shl32Imm(amd64.RCX, ring.ExecShift)
	c.Lea(amd64.R8, amd64.AtIndex(amd64.R9, amd64.RCX, 1, ring.ExecsOff))
	c.CmpMem32Imm8(amd64.At(amd64.R8, ring.ExecState), 0)
	c.Jcc(amd64.CondNE, out) // so many at once
	c.Store32(amd64.At(amd64.R8, ring.ExecTID), amd64.R12)
	c.Store32(amd64.At(amd64.R8, ring.ExecPID), amd64.R13)
	c.Store32Imm(amd64.At(amd64.R8, ring.ExecState), ring.ExecAsked)
	c.Lea(amd64.RDI, e.hdr(ring.HdrExecs))
	c.MovImm32(amd64.RSI, futexWake)
	c.MovImm32(amd64.RDX, 1)
	c.MovImm32(amd64.RAX, sysFutex)
	c.Syscall()
	c.MovImm32(amd64.R13, maxExecNaps)
	c.Place(wait)
	c.CmpMem32Imm8(amd64.At(amd64.R8, ring.ExecState), ring.ExecAsked)
	c.Jcc(amd64.CondNE, done)
	c.CmpMem64Imm8(e.hdr(ring.HdrFollow), stub.FollowOn)
	c.Jcc(amd64.CondNE, done)
	e.heartbeat(ring.HdrWaitLimit)
	c.Jcc(amd64.CondA, done)
	c.Lea(amd64.R13, amd64.At(amd64.R13, -1))
	c.Test(amd64.R13, amd64.R13)
	c.Jcc(amd64.CondS, done)
	c.sleep(napAt)
	c.Jmp(wait)
	c.Place(done)
	c.Store32Imm(amd64.At(amd64.R8, ring.ExecState), 0)
	c.Place(out)
	c.returnWith(kept)
	c.endRoutine()
	return addr
}
