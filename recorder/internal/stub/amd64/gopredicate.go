package amd64

import (
	"slices"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/golang"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// A Go function's stub has but three registers to spare, so one of them has what tells the predicates which call it is: the word of the
// event in bits 0 to 31, the first predicate and their number in 32 to 37 and 38 to 44, and SPDelta in units of 8 bytes above.
const (
	goPredicateFirst = 32
	goPredicateCount = 38
	goPredicateDelta = 45
)

// maxGoDelta bounds SPDelta for a function with predicates.
const maxGoDelta = 8 * (1<<(64-goPredicateDelta) - 1)

// predicates appends the call of what tests them, behind the event of a Go function. Registers and flags are kept as by event.
func (g goEvents) predicates(c *coder, w stub.Predicates, id uint32, exit bool, spDelta int32) {
	if spDelta < 0 || spDelta > maxGoDelta {
		return // both ends of it then, since one without the other has nothing to look at
	}
	back, off := c.NewLabel(), c.NewLabel()
	c.whileOn(amd64.R12, off, off)
	c.MovImm64(amd64.R15, uint64(spDelta)/8<<goPredicateDelta|uint64(w.Count)<<goPredicateCount|uint64(w.First)<<goPredicateFirst|uint64(word(id, exit)))
	c.LeaLabel(amd64.R12, back)
	c.JmpTo(c.routines.goroutine.predicates)
	c.Place(back)
	c.Place(off)
}

// toOwnStack appends the change to the thread's own stack of callreel's: R13 becomes the goroutine's stack pointer. It jumps to skip where
// that can't be: in a signal handler, or while the thread is set up.
func (c *coder) toOwnStack(skip amd64.Label) {
	c.Load64(amd64.R13, amd64.AtFS(golang.G))
	c.CmpMem(amd64.R13, amd64.AtFS(golang.Gsignal))
	c.Jcc(amd64.CondE, skip)
	c.onStack(amd64.R13, skip)
	c.Load32(amd64.R13, amd64.AtFS(golang.ProcID))
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

// emitPredicates appends what stubs of a Go program jump to with the address to return to in R12 and R15 as said above.
func (g goEvents) emitPredicates(c *coder) {
	c.Align(64)
	c.routines.goroutine.predicates = c.PC()
	skip, leave, done := c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.toOwnStack(skip)
	kept := []amd64.Reg{amd64.R13, amd64.R12, amd64.RAX, amd64.RCX, amd64.RDX, amd64.R10}
	for _, r := range kept {
		c.Push(r)
	}
	// The stack pointer at the entry, less the end of the goroutine's stack, as in events.
	c.Mov(amd64.RDX, amd64.R15)
	c.ShrImm(amd64.RDX, goPredicateDelta)
	c.ShlImm(amd64.RDX, 3)
	c.Add(amd64.RDX, amd64.R13)
	c.Load64(amd64.R10, amd64.AtFS(golang.G))
	c.SubMem(amd64.RDX, amd64.At(amd64.R10, golang.StackHi))
	c.Load64(amd64.R10, amd64.At(amd64.R10, g.GoID))
	// RCX as predicates sets it: the entry's word, the first predicate from bit 32 on, their number from bit 40 on.
	c.Mov(amd64.RCX, amd64.R15)
	c.ShrImm(amd64.RCX, goPredicateCount)
	c.And32Imm(amd64.RCX, 1<<(goPredicateDelta-goPredicateCount)-1)
	c.ShlImm(amd64.RCX, 8)
	c.Mov(amd64.R13, amd64.R15)
	c.ShrImm(amd64.R13, goPredicateFirst)
	c.And32Imm(amd64.R13, 1<<(goPredicateCount-goPredicateFirst)-1)
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
	c.CallTo(c.routines.predicates.enter)
	c.Jmp(done)
	c.Place(leave)
	c.CallTo(c.routines.predicates.leave)
	c.Place(done)
	c.fromOwnStack(kept, skip)
}
