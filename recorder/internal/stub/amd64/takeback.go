package amd64

import (
	"math"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// With Config.Min an exit first looks at the last event that its thread has claimed in its chunk. If that is the entry of this very
// call, nothing that was made since is kept; and if the call was shorter than ring.HdrMin says, the entry is taken back: its word
// becomes 0, and then the claim word what it was before the entry. Else the exit is written as usual.
//
// A signal handler may come between any two instructions, write events, and go on to another chunk, so that this one is drained and
// becomes another thread's. docs/design/choosing-less.md says why nothing goes wrong then. In short: before the entry is looked at
// for good its address is in the thread's word at ring.TakingOff. As long as it does the recorder gives the chunk to nobody and
// handlers take nothing back; and the last step is a CMPXCHG, which fails if a handler has claimed anything.

// What is kept below the stack pointer S besides what event.go says. Nothing is called meanwhile.
const (
	saveTaking = -64 // the address of the thread's word at ring.TakingOff
	saveClaim  = -72 // the claim word as it was read first
	saveMin    = -80
	saveSlot   = -88
)

// takeBack appends that to an exit's event, behind saveFlags. It jumps to off when the entry is taken back, and goes on when the exit
// is to be written. S, which is the stack pointer at the function's entry, is above bytes higher than RSP. With above 0 the event is
// that of function id, else its word is at saveWord.
func (c *coder) takeBack(id uint32, above int32, off amd64.Label) {
	keep, undo, late := c.NewLabel(), c.NewLabel(), c.NewLabel()
	at := func(save int32) amd64.Mem { return amd64.At(amd64.RSP, save+above) }
	last := func(field int32) amd64.Mem { return amd64.At(amd64.RCX, field-ring.EventSize) }
	isEntry := func(no amd64.Label) { // RAX is clobbered
		if above == 0 {
			c.CmpMem32Imm(last(ring.EventWord), word(id, false))
			c.Jcc(amd64.CondNE, no)
			c.CmpMem32(amd64.RSP, last(ring.EventSP))
		} else {
			c.Load32(amd64.RAX, at(saveWord))
			c.Lea(amd64.RAX, amd64.At(amd64.RAX, -1))
			c.CmpMem32(amd64.RAX, last(ring.EventWord))
			c.Jcc(amd64.CondNE, no)
			c.Lea(amd64.RAX, amd64.At(amd64.RSP, above))
			c.CmpMem32(amd64.RAX, last(ring.EventSP))
		}
		c.Jcc(amd64.CondNE, no)
	}

	c.unlessHeld(amd64.RAX, keep)
	c.Load64(amd64.RDX, amd64.AtAddr(c.cfg.Gate))
	c.threadID(amd64.RAX)
	c.Test(amd64.RDX, amd64.RDX)
	c.Jcc(amd64.CondLE, keep)
	c.unlessPaused(amd64.RDX, keep)
	c.Shl32Imm(amd64.RAX, 3)
	c.Lea(amd64.RCX, amd64.AtIndex(amd64.RDX, amd64.RAX, 1, ring.TakingOff-ring.SlotsOff))
	c.Store64(at(saveTaking), amd64.RCX)
	c.Lea(amd64.RAX, amd64.AtIndex(amd64.RDX, amd64.RAX, 8, 0))
	c.Store64(at(saveSlot), amd64.RAX)
	c.Load64(amd64.RDX, amd64.At(amd64.RDX, ring.HdrMin-ring.SlotsOff))
	c.Load64(amd64.RCX, amd64.At(amd64.RAX, ring.SlotClaim))
	c.Store64(at(saveMin), amd64.RDX)
	c.Test(amd64.RCX, amd64.RCX)
	c.Jcc(amd64.CondNS, keep)
	c.Store64(at(saveClaim), amd64.RCX)
	c.addressOf(amd64.RCX)
	isEntry(keep) // not at a chunk's first position: before that is its header, which ends with zeros

	c.Rdtsc()
	c.SubMem32(amd64.RAX, last(ring.EventTime))
	c.SbbMem32(amd64.RDX, last(ring.EventTime+4))
	c.CmpMem32(amd64.RAX, at(saveMin))
	c.SbbMem32(amd64.RDX, at(saveMin+4))
	c.Jcc(amd64.CondAE, keep)

	c.Load64(amd64.RDX, at(saveTaking))
	c.CmpMem64Imm8(amd64.At(amd64.RDX, 0), 0)
	c.Jcc(amd64.CondNE, keep) // below this handler an exit is taking back
	c.Store64(amd64.At(amd64.RDX, 0), amd64.RCX)
	// From here on the chunk stays where it is, if it still is the thread's. That the same place in it was reached again by a handler
	// is told by the stack pointer: no other call has that while this one is open.
	c.Load64(amd64.RDX, at(saveSlot))
	c.Load64(amd64.RAX, at(saveClaim))
	c.CmpMem(amd64.RAX, amd64.At(amd64.RDX, ring.SlotClaim))
	c.Jcc(amd64.CondNE, undo)
	if above == 0 {
		c.CmpMem32(amd64.RSP, last(ring.EventSP))
	} else {
		c.Lea(amd64.RAX, amd64.At(amd64.RSP, above))
		c.CmpMem32(amd64.RAX, last(ring.EventSP))
		c.Load64(amd64.RAX, at(saveClaim)) // flags stay
	}
	c.Jcc(amd64.CondNE, undo)
	c.Store32Imm(last(ring.EventWord), 0)
	c.MovImm64(amd64.RCX, uint64(math.MaxUint64-ring.Claim+1))
	c.Add(amd64.RCX, amd64.RAX)
	c.Cmpxchg64(amd64.At(amd64.RDX, ring.SlotClaim), amd64.RCX)
	c.Jcc(amd64.CondNE, late)
	c.Load64(amd64.RDX, at(saveTaking))
	c.Store64Imm(amd64.At(amd64.RDX, 0), 0)
	c.Jmp(off)

	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(late)
		c.addressOf(amd64.RCX)
		if above == 0 {
			c.Store32Imm(amd64.At(amd64.RCX, ring.EventWord), word(id, false))
		} else {
			c.Load32(amd64.RAX, at(saveWord))
			c.Lea(amd64.RAX, amd64.At(amd64.RAX, -1))
			c.Store32(amd64.At(amd64.RCX, ring.EventWord), amd64.RAX)
		}
		c.Place(undo)
		c.Load64(amd64.RDX, at(saveTaking))
		c.Store64Imm(amd64.At(amd64.RDX, 0), 0)
		c.Jmp(keep)
	})
	c.Place(keep)
}
