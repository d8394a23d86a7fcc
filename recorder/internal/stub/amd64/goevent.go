package amd64

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/reel"
)

// A Go function may have no more than some bytes below the stack pointer, and nothing skips a red zone there; but in code that the Go
// compiler makes R12, R13 and R15 and the flags hold nothing at an entry, behind the stack check, and at a return
// (cmd/compile/abi-internal.md). So these are all that an event uses. What a thread's ring is full of, or when another goroutine runs
// on it than before, is done on a stack of callreel's own.
//
// An event's SP is that of the entry less the end of the goroutine's stack, which doesn't change when the stack moves.
//
// Signal handlers run on the stack of g.m.gsignal, at first still with the interrupted goroutine's g. They write no events: so between
// two instructions of a stub nothing of its thread's changes. Nor does its goroutine: the runtime preempts only where the PC is Go code.

// event appends code that writes one event of a Go function.
func (g goEvents) event(c *coder, id uint32, exit bool, spDelta int32) {
	off, slow := c.NewLabel(), c.NewLabel()
	g.claim(c, 1, off, slow)
	c.Test(amd64.R15, amd64.R15)
	c.Jcc(amd64.CondNS, slow)
	c.addressOf(amd64.R15)
	g.write(c, id, exit, spDelta)
	c.Place(off)
	c.cold = append(c.cold, func() {
		c.Place(slow)
		c.MovImm64(amd64.R15, uint64(uint32(spDelta))<<32|uint64(word(id, exit)))
		c.LeaLabel(amd64.R12, off)
		c.JmpTo(c.routines.goroutine.slow)
	})
}

// claim appends the claim of n events: R15 becomes the claim word that was there. It jumps to off when the gate is closed, to slow when another
// goroutine than the thread's last runs, or none.
func (g goEvents) claim(c *coder, n int, off, slow amd64.Label) {
	c.unlessHeld(amd64.R12, off)
	c.Load64(amd64.R12, amd64.AtAddr(c.cfg.Gate))
	c.Load32(amd64.R13, amd64.AtFS(golang.ProcID))
	c.Test(amd64.R12, amd64.R12)
	c.Jcc(amd64.CondLE, off)
	c.unlessPaused(amd64.R12, off)
	c.Load64(amd64.R15, amd64.AtFS(golang.G))
	c.onStack(amd64.R15, slow)
	c.Load64(amd64.R15, amd64.At(amd64.R15, g.GoID))
	c.CmpMem(amd64.R15, amd64.AtIndex(amd64.R12, amd64.R13, 8, ring.GoKeysOff-ring.SlotsOff))
	c.Jcc(amd64.CondNE, slow)
	c.Shl32Imm(amd64.R13, 3)
	c.MovImm64(amd64.R15, uint64(n)*ring.Claim)
	c.Xadd64(amd64.AtIndex(amd64.R12, amd64.R13, 8, ring.SlotClaim), amd64.R15)
}

// write appends the writing of the event at R15.
func (g goEvents) write(c *coder, id uint32, exit bool, spDelta int32) {
	c.Load64(amd64.R12, amd64.AtFS(golang.G))
	c.Lea(amd64.R13, amd64.At(amd64.RSP, spDelta))
	c.SubMem(amd64.R13, amd64.At(amd64.R12, golang.StackHi))
	c.Store32(amd64.At(amd64.R15, ring.EventSP), amd64.R13)
	c.Mov(amd64.R12, amd64.RAX)
	c.Mov(amd64.R13, amd64.RDX)
	c.Rdtsc()
	c.Store32(amd64.At(amd64.R15, ring.EventTime), amd64.RAX)
	c.Store32(amd64.At(amd64.R15, ring.EventTime+4), amd64.RDX)
	c.Mov(amd64.RAX, amd64.R12)
	c.Mov(amd64.RDX, amd64.R13)
	c.Store32Imm(amd64.At(amd64.R15, ring.EventWord), word(id, exit))
}

// onStack jumps to no where the stack pointer isn't in the stack of the g in r.
func (c *coder) onStack(r amd64.Reg, no amd64.Label) {
	c.CmpMem(amd64.RSP, amd64.At(r, golang.StackLo))
	c.Jcc(amd64.CondB, no)
	c.CmpMem(amd64.RSP, amd64.At(r, golang.StackHi))
	c.Jcc(amd64.CondA, no)
}

// emitSlow appends what stubs of a Go program jump to with the address to return to in R12 and SPDelta and word in R15, when there
// is another goroutine than the thread's last, or no space, or no event to be written since it is a signal handler that runs.
//
// Before the event of another goroutine goes one that names it, see reel.Switch. It counts as the exit of an accepted call, so it is
// not dropped as long as there is a reserve; if it is lost, the thread tries again at its next event, and this one is dropped: it
// would be taken for the other goroutine's.
//
// For events with a payload it is the same, with the address of what gathers it before the one in R12.
func (g goEvents) emitSlow(c *coder, payload bool) uint64 {
	c.Align(8)
	c.routines.goroutine.stacksAt = c.PC()
	c.Raw(binary.LittleEndian.AppendUint64(nil, g.Stacks+ring.GoStackSize)...)
	c.Align(64)
	addr := c.PC()
	const (
		oldSP  = 6 * 8 // where, on the thread's own stack, the goroutine's stack pointer is kept
		deltaW = 4 * 8 // and R15
	)
	skip, same, lost, out := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.toOwnStack(skip)
	kept := []amd64.Reg{amd64.R13, amd64.R12, amd64.R15, amd64.RBX, amd64.RAX, amd64.RCX, amd64.RDX}
	for _, r := range kept {
		c.Push(r)
	}
	c.Load64(amd64.R12, amd64.AtAddr(c.cfg.Gate))
	c.Load32(amd64.R13, amd64.AtFS(golang.ProcID))
	c.Test(amd64.R12, amd64.R12)
	c.Jcc(amd64.CondLE, out)
	c.Load64(amd64.R15, amd64.AtFS(golang.G))
	c.Load64(amd64.R15, amd64.At(amd64.R15, g.GoID))
	key := amd64.AtIndex(amd64.R12, amd64.R13, 8, ring.GoKeysOff-ring.SlotsOff)
	c.CmpMem(amd64.R15, key)
	c.Jcc(amd64.CondE, same)

	slot := func(off int32) amd64.Mem {
		c.Mov32(amd64.RAX, amd64.R13)
		c.Shl32Imm(amd64.RAX, 3)
		return amd64.AtIndex(amd64.R12, amd64.RAX, 8, off)
	}
	c.Load64(amd64.RBX, slot(ring.SlotLostExits))
	c.Mov(amd64.RCX, amd64.R15)
	c.ShrImm(amd64.RCX, 32)
	c.Shl32Imm(amd64.RCX, 1)
	c.MovImm32(amd64.RDX, reel.SwitchWord)
	c.Or(amd64.RCX, amd64.RDX)
	c.Mov32(amd64.RDX, amd64.R15)
	c.MovImm64(amd64.RAX, 1<<32) // above any SP: never below the mark of what is dropped
	c.Or(amd64.RDX, amd64.RAX)
	c.Mov32(amd64.RAX, amd64.R13)
	c.Shl32Imm(amd64.RAX, 3)
	c.CallTo(c.routines.slow)
	c.CmpMem64Imm8(amd64.AtAddr(c.cfg.Gate), 0)
	c.Jcc(amd64.CondLE, out)
	c.CmpMem(amd64.RBX, slot(ring.SlotLostExits))
	c.Jcc(amd64.CondNE, lost)
	c.Store64(key, amd64.R15)

	c.Place(same)
	c.Load64(amd64.RCX, amd64.At(amd64.RSP, deltaW))
	c.Load64(amd64.RDX, amd64.At(amd64.RSP, oldSP))
	c.Mov(amd64.RAX, amd64.RCX)
	c.ShrImm(amd64.RAX, 32)
	c.Add(amd64.RDX, amd64.RAX)
	c.Load64(amd64.RAX, amd64.AtFS(golang.G))
	c.SubMem(amd64.RDX, amd64.At(amd64.RAX, golang.StackHi))
	c.Mov32(amd64.RDX, amd64.RDX)
	c.Mov32(amd64.RCX, amd64.RCX)
	if payload {
		c.goPayload(kept)
	} else {
		c.Mov32(amd64.RAX, amd64.R13)
		c.Shl32Imm(amd64.RAX, 3)
		c.CallTo(c.routines.slow)
	}

	c.Place(out)
	c.fromOwnStack(kept, skip)

	c.Place(lost)
	c.Load32(amd64.RCX, amd64.At(amd64.RSP, deltaW))
	c.TestALImm(amd64.RCX, 1)
	c.Jcc(amd64.CondNE, out)
	c.IncMem(slot(ring.SlotDropped))
	c.Jmp(out)
	return addr
}
