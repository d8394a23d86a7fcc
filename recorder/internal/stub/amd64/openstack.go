package amd64

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// The open stack has, for each thread, a record of each of its open calls whose entry was chosen at run time: what the exit must know
// is whether its entry was. An entry pushes its stack pointer and word, the exit looks for them at the top. A call that is ended by
// longjmp or an exception has no exit; its record goes when a call as high up in the stack, or higher, comes.
//
// Only the thread itself changes its area, but its signal handlers may do so between any two instructions. So the top is changed by a
// CMPXCHG of the count together with a number of the change: if a handler has pushed and popped in between, it fails, and all is done
// again, the record's writing included. A record is written above the top before the top is raised, so no handler takes it for one.

// openStack are the addresses of its routines, for a call out of event code, which has saved RAX, RCX, RDX and the flags and called with
// the stack pointer S that event.go speaks of.
//
// push is called with ECX the word of the entry's event and RDX the stack pointer at the function's entry, pop with the same, the
// word being still the entry's. EAX tells whether there was space for the record, and whether there was one. RAX, RCX, RDX and flags
// are clobbered. A thread whose ID isn't set up yet has no space.
type openStack struct {
	push, pop uint64
	areasAt   uint64 // where cfg.Areas is
}

// area appends the loading of the address of the thread's area; r is clobbered.
func (c *coder) area(r amd64.Reg) {
	c.threadID(r)
	c.ShlImm(r, ring.AreaShift)
	c.AddMem(r, amd64.AtAddr(c.routines.open.areasAt))
}

// ifNoneOpen appends a jump to none, at an exit, where surely no record is this call's: most often, with few records. The stack pointer
// here is spDelta below its value at the function's entry. RAX, RDX and flags are clobbered.
func (c *coder) ifNoneOpen(none amd64.Label, spDelta int32) {
	c.area(amd64.RDX)
	c.Load32(amd64.RAX, amd64.At(amd64.RDX, ring.AreaTop))
	c.Test(amd64.RAX, amd64.RAX)
	c.Jcc(amd64.CondE, none)
	c.Load32(amd64.RAX, amd64.AtIndex(amd64.RDX, amd64.RAX, 8, ring.AreaOpen-8))
	c.Lea(amd64.RDX, amd64.At(amd64.RSP, spDelta))
	c.Cmp32(amd64.RAX, amd64.RDX)
	c.Jcc(amd64.CondA, none)
}

// Registers inside: RBX the record, RDX the low half of the stack pointer, RSI the area, RAX the top as read, RCX the count, RDI the change.
func (c *coder) emitOpenStack() {
	c.Align(8)
	c.routines.open.areasAt = c.PC()
	c.Raw(binary.LittleEndian.AppendUint64(nil, c.cfg.Areas)...)
	c.routines.open.push = c.openRoutine(true)
	c.routines.open.pop = c.openRoutine(false)
}

func (c *coder) openRoutine(push bool) uint64 {
	c.Align(64)
	addr := c.PC()
	again, prune, no, out := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	kept := []amd64.Reg{amd64.RBX, amd64.RSI, amd64.RDI}
	c.beginKeeping(kept)
	c.Mov32(amd64.RBX, amd64.RCX)
	c.ShlImm(amd64.RBX, 32)
	c.Mov32(amd64.RDX, amd64.RDX)
	c.Or(amd64.RBX, amd64.RDX)
	c.threadID(amd64.RSI)
	c.Test(amd64.RSI, amd64.RSI)
	c.Jcc(amd64.CondE, no)
	c.ShlImm(amd64.RSI, ring.AreaShift)
	c.AddMem(amd64.RSI, amd64.AtAddr(c.routines.open.areasAt))

	c.Place(again)
	c.Load64(amd64.RAX, amd64.At(amd64.RSI, ring.AreaTop))
	c.Mov32(amd64.RCX, amd64.RAX)
	below := amd64.AtIndex(amd64.RSI, amd64.RCX, 8, ring.AreaOpen-8)
	c.Place(prune)
	found := c.NewLabel()
	c.Test(amd64.RCX, amd64.RCX)
	if push {
		c.Jcc(amd64.CondE, found)
		c.CmpMem32(amd64.RDX, below)
		c.Jcc(amd64.CondB, found) // the caller's, or a caller's of it
		c.Lea(amd64.RCX, amd64.At(amd64.RCX, -1))
		c.Jmp(prune)
		c.Place(found)
		c.CmpImm32(amd64.RCX, ring.MaxOpen)
		c.Jcc(amd64.CondAE, no)
		c.Store64(amd64.AtIndex(amd64.RSI, amd64.RCX, 8, ring.AreaOpen), amd64.RBX)
		c.Lea(amd64.RCX, amd64.At(amd64.RCX, 1))
	} else {
		c.Jcc(amd64.CondE, no)
		c.CmpMem(amd64.RBX, below)
		c.Jcc(amd64.CondE, found)
		c.CmpMem32(amd64.RDX, below)
		c.Jcc(amd64.CondB, no)
		c.Lea(amd64.RCX, amd64.At(amd64.RCX, -1))
		c.Jmp(prune)
		c.Place(found)
		c.Lea(amd64.RCX, amd64.At(amd64.RCX, -1))
	}
	// RCX becomes the new top: the next number of change, and the count.
	c.MovImm64(amd64.RDI, 1<<32)
	c.Add(amd64.RCX, amd64.RDI)
	c.Mov(amd64.RDI, amd64.RAX)
	c.ShrImm(amd64.RDI, 32)
	c.ShlImm(amd64.RDI, 32)
	c.Add(amd64.RCX, amd64.RDI)
	c.Cmpxchg64(amd64.At(amd64.RSI, ring.AreaTop), amd64.RCX)
	c.Jcc(amd64.CondNE, again)
	c.MovImm32(amd64.RAX, 1)
	c.Jmp(out)
	c.Place(no)
	c.MovImm32(amd64.RAX, 0)
	c.Place(out)
	c.returnWith(kept)
	c.endRoutine()
	return addr
}
