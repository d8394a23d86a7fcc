package probe

import (
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// A Go function's stub has but three registers to spare, so what tells the watch which call it is stands in one of them: the word of the
// event in bits 0 to 31, the first watch and their number in 32 to 37 and 38 to 44, and SPDelta in units of 8 bytes above.
const (
	goWatchFirst = 32
	goWatchCount = 38
	goWatchDelta = 45
)

// maxGoDelta bounds SPDelta for a function that is watched.
const maxGoDelta = 8 * (1<<(64-goWatchDelta) - 1)

// goWatch appends the call of a watch behind the event of a Go function. Registers and flags are kept as by goEvent.
func (c *coder) goWatch(w Watched, id uint32, exit bool, spDelta int32) {
	if spDelta < 0 || spDelta > maxGoDelta {
		return // both ends of it then, since one without the other has nothing to look at
	}
	back, off := c.NewLabel(), c.NewLabel()
	c.CmpMem64Imm8(amd64.AtAddr(c.cfg.Gate), 0)
	c.Jcc(amd64.CondLE, off)
	c.MovImm64(amd64.R15, uint64(spDelta)/8<<goWatchDelta|uint64(w.Count)<<goWatchCount|uint64(w.First)<<goWatchFirst|uint64(word(id, exit)))
	c.LeaLabel(amd64.R12, back)
	c.JmpTo(c.routines.goroutine.conditions)
	c.Place(back)
	c.Place(off)
}

// toOwnStack appends the change to the thread's own stack of callreel's: R13 becomes the goroutine's stack pointer. It jumps to skip where
// that can't be: in a signal handler, or while the thread is set up.
func (c *coder) toOwnStack(skip amd64.Label) {
	c.Load64(amd64.R13, amd64.AtFS(goG))
	c.CmpMem(amd64.R13, amd64.AtFS(goGsignal))
	c.Jcc(amd64.CondE, skip)
	c.onStack(amd64.R13, skip)
	c.Load32(amd64.R13, amd64.AtFS(GoProcID))
	c.Test(amd64.R13, amd64.R13)
	c.Jcc(amd64.CondE, skip)
	c.ShlImm(amd64.R13, ring.GoStackShift)
	c.AddMem(amd64.R13, amd64.AtAddr(c.routines.goroutine.stacksAt))
	c.Xchg(amd64.RSP, amd64.R13)
}

// fromOwnStack restores what was pushed on that stack, R13 and R12 first of all, and goes on at R12 on the goroutine's. skip leads behind
// all but the jump.
func (c *coder) fromOwnStack(pushed []amd64.Reg, skip amd64.Label) {
	for _, r := range slices.Backward(pushed) {
		c.Pop(r)
	}
	c.Mov(amd64.RSP, amd64.R13)
	c.Place(skip)
	c.JmpReg(amd64.R12)
}

// emitGoWatch appends what stubs of a Go program jump to with the address to return to in R12 and R15 as said above.
func (c *coder) emitGoWatch() {
	c.Align(64)
	c.routines.goroutine.conditions = c.PC()
	skip, leave, done := c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.toOwnStack(skip)
	kept := []amd64.Reg{amd64.R13, amd64.R12, amd64.RAX, amd64.RCX, amd64.RDX, amd64.R10}
	for _, r := range kept {
		c.Push(r)
	}
	// The stack pointer at the entry, less the end of the goroutine's stack, as in events.
	c.Mov(amd64.RDX, amd64.R15)
	c.ShrImm(amd64.RDX, goWatchDelta)
	c.ShlImm(amd64.RDX, 3)
	c.Add(amd64.RDX, amd64.R13)
	c.Load64(amd64.R10, amd64.AtFS(goG))
	c.SubMem(amd64.RDX, amd64.At(amd64.R10, gStackHi))
	c.Load64(amd64.R10, amd64.At(amd64.R10, c.cfg.Go.GoID))
	// RCX as watch sets it: the entry's word, the first watch from bit 32 on, their number from bit 40 on.
	c.Mov(amd64.RCX, amd64.R15)
	c.ShrImm(amd64.RCX, goWatchCount)
	c.And32Imm(amd64.RCX, 1<<(goWatchDelta-goWatchCount)-1)
	c.ShlImm(amd64.RCX, 8)
	c.Mov(amd64.R13, amd64.R15)
	c.ShrImm(amd64.R13, goWatchFirst)
	c.And32Imm(amd64.R13, 1<<(goWatchCount-goWatchFirst)-1)
	c.Or(amd64.RCX, amd64.R13)
	c.ShlImm(amd64.RCX, 32)
	c.Mov32(amd64.R13, amd64.R15)
	c.ShrImm(amd64.R13, 1)
	c.ShlImm(amd64.R13, 1)
	c.Or(amd64.RCX, amd64.R13)
	c.Mov(amd64.R13, amd64.R15)
	c.And32Imm(amd64.R13, 1)
	c.Test(amd64.R13, amd64.R13)
	c.Jcc(amd64.CondNE, leave)
	c.CallTo(c.routines.conditions.enter)
	c.Jmp(done)
	c.Place(leave)
	c.CallTo(c.routines.conditions.leave)
	c.Place(done)
	c.fromOwnStack(kept, skip)
}
