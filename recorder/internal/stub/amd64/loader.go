package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A dynamic loader calls a function that does nothing for debuggers, which set a breakpoint there: when it is about to map or unmap
// libraries, and when that is complete (r_brk of struct r_debug, <link.h>). It is before their constructors run, so with a hook there the
// recorder learns of a library before its first call, and the thread that loads it waits until its functions are probed. If the recorder
// isn't at it after ring.HdrLoadAsk, and has shown no sign of life since, the thread goes on, and so it does after ring.HdrLoadMost in any
// case. Nobody waits from then on until the recorder says so again.

// States of struct r_debug (<link.h>).
const rtDelete = 2

// maxLoadNaps bounds the waiting besides the clock.
const maxLoadNaps = 5000

// loaderPath is what is done at a loader's function. System calls are made as in the slow path: counted, and with the gate seen open. A
// forked child, also one that a signal handler forks in the middle of it, has its gate closed and leaves.
//
// Registers inside: R8 slot, R9 ring, R10 TSC at the beginning, R12 the number waited for, R13 how many naps are left.
type loaderPath struct {
	*slowPath
	complete, wait, nap, vain, leave, closed, out amd64.Label
}

// emitLoader appends that, and returns its address. RAX and flags are clobbered. napAt is that of the time of a nap.
func (c *coder) emitLoader(napAt uint64) uint64 {
	c.Align(64)
	addr := c.PC()
	l := &loaderPath{slowPath: &slowPath{coder: c}}
	for _, label := range []*amd64.Label{&l.complete, &l.wait, &l.nap, &l.vain, &l.leave, &l.closed, &l.out} {
		*label = c.NewLabel()
	}
	kept := []amd64.Reg{amd64.RCX, amd64.RDX, amd64.RSI, amd64.RDI, amd64.R8, amd64.R9, amd64.R10, amd64.R11, amd64.R12, amd64.R13}
	c.beginKeeping(kept)
	l.look()
	l.tell()
	l.await(napAt)
	c.returnWith(kept)
	c.endRoutine()
	return addr
}

// look goes on at complete if the process is the one that is recorded, and the loader has completed what it does.
func (l *loaderPath) look() {
	l.Load64(amd64.R9, amd64.AtAddr(l.cfg.Gate+stub.GateOwn))
	l.CmpImm64(amd64.R9, stub.GateNever)
	l.Jcc(amd64.CondBE, l.out)
	l.CmpMem64Imm8(amd64.AtAddr(l.cfg.Gate), 0)
	l.Jcc(amd64.CondLE, l.out)
	l.threadID(amd64.RAX)
	l.Test(amd64.RAX, amd64.RAX) // no thread has ID 0: the descriptor isn't set up
	l.Jcc(amd64.CondE, l.out)
	l.Shl32Imm(amd64.RAX, 3)
	l.Lea(amd64.R8, amd64.AtIndex(amd64.R9, amd64.RAX, 8, ring.SlotsOff))
	if l.cfg.LoaderState == 0 {
		return
	}
	l.MovImm64(amd64.RCX, l.cfg.LoaderState)
	l.Load32(amd64.RAX, amd64.At(amd64.RCX, 0))
	l.Test(amd64.RAX, amd64.RAX)
	l.Jcc(amd64.CondE, l.complete)
	l.Store32(l.hdr(ring.HdrLoadKind), amd64.RAX)
	l.Jmp(l.out)
}

// tell takes a number, and wakes the recorder.
func (l *loaderPath) tell() {
	l.Place(l.complete)
	l.count(1)
	l.CmpMem64Imm8(amd64.AtAddr(l.cfg.Gate), 0)
	l.Jcc(amd64.CondLE, l.closed)
	l.MovImm32(amd64.R12, 1)
	l.LockXadd32(l.hdr(ring.HdrLoads), amd64.R12)
	l.Lea(amd64.R12, amd64.At(amd64.R12, 1))
	l.Lea(amd64.RDI, l.hdr(ring.HdrLoads))
	l.MovImm32(amd64.RSI, futexWake)
	l.MovImm32(amd64.RDX, 1)
	l.MovImm32(amd64.RAX, sysFutex)
	l.Syscall()
}

// await waits until the recorder has seen to the number, if it is to be waited for.
func (l *loaderPath) await(napAt uint64) {
	l.Load32(amd64.RAX, l.hdr(ring.HdrLoadKind))
	l.Store32Imm(l.hdr(ring.HdrLoadKind), 0) // another namespace's state isn't looked at, see Config.LoaderState
	l.CmpImm32(amd64.RAX, rtDelete)
	l.Jcc(amd64.CondE, l.leave)
	l.MovImm32(amd64.R13, maxLoadNaps)
	l.ticks()
	l.Mov(amd64.R10, amd64.RAX)
	l.Place(l.wait)
	// The gate first: a child may have no ring.
	l.CmpMem64Imm8(amd64.AtAddr(l.cfg.Gate), 0)
	l.Jcc(amd64.CondLE, l.closed)
	l.CmpMem64Imm8(l.hdr(ring.HdrLoadWait), 0)
	l.Jcc(amd64.CondE, l.leave)
	l.Load32(amd64.RAX, l.hdr(ring.HdrLoadsDone))
	l.Sub32(amd64.RAX, amd64.R12) // numbers may begin anew
	l.Jcc(amd64.CondNS, l.leave)
	l.ticks()
	l.Sub(amd64.RAX, amd64.R10)
	l.CmpMem(amd64.RAX, l.hdr(ring.HdrLoadMost))
	l.Jcc(amd64.CondAE, l.vain)
	l.Load32(amd64.RCX, l.hdr(ring.HdrLoadsTaken))
	l.Sub32(amd64.RCX, amd64.R12)
	l.Jcc(amd64.CondNS, l.nap)
	l.CmpMem(amd64.RAX, l.hdr(ring.HdrLoadAsk))
	l.Jcc(amd64.CondB, l.nap)
	l.CmpMem(amd64.R10, l.hdr(ring.HdrHeartbeat))
	l.Jcc(amd64.CondAE, l.vain)
	l.Place(l.nap)
	l.Lea(amd64.R13, amd64.At(amd64.R13, -1))
	l.Test(amd64.R13, amd64.R13)
	l.Jcc(amd64.CondS, l.vain)
	l.sleep(napAt)
	l.Jmp(l.wait)
	l.Place(l.vain)
	l.Store64Imm(l.hdr(ring.HdrLoadWait), 0)
	l.Place(l.leave)
	l.count(-1)
	l.Jmp(l.out)
	l.Place(l.closed)
	l.Load64(amd64.RAX, amd64.AtAddr(l.cfg.Gate+stub.GateOwn))
	l.CmpImm64(amd64.RAX, stub.GateNever)
	l.Jcc(amd64.CondA, l.leave) // else it is a child's, which isn't counted
	l.Place(l.out)
}

// ticks sets RAX to the time-stamp counter; RDX is clobbered.
func (l *loaderPath) ticks() {
	l.Rdtsc()
	l.ShlImm(amd64.RDX, 32)
	l.Or(amd64.RAX, amd64.RDX)
}
