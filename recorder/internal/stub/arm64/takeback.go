package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// With Config.Min an exit first looks at the last event that its thread has claimed in its chunk. If that is the entry of this very call,
// nothing that was made since is kept; and if the call was shorter than ring.HdrMin says, the entry is taken back: its word becomes 0, and
// then the claim word what it was before the entry. Else the exit is written as usual. See the same of x86-64, and
// docs/design/ring-protocol.md, "Taking back", for why no handler in between does harm. The stores at ring.TakingOff are releases.

// takeBackSize is how many bytes that takes at most.
const takeBackSize = 320

// takeBack appends that to an exit's event. It goes to off when the entry is taken back, and on when the exit is to be written. entryWord
// loads the word of the call's entry.
//
// Registers inside: x0 the thread's word at ring.TakingOff, x1 the least duration, x2 the claim word as it was read, x3 the address in it, x16
// the slot; x4, x5 and x17 change.
func (c *coder) takeBack(entryWord func(r isa.Reg), spDelta int32, off arm64.Label) {
	keep, undo, late := c.NewLabel(), c.NewLabel(), c.NewLabel()
	last := func(field int32) arm64.Mem { return arm64.At(x3, field-ring.EventSize) }
	sameSP := func(no arm64.Label) {
		c.Load(4, x17, last(ring.EventSP))
		c.spAtEntry(x4, spDelta)
		c.EorW(x17, x17, x4)
		c.CbnzW(x17, no)
	}
	c.push(x0, x1)
	c.push(x2, x3)
	c.push(x4, x5)
	c.unlessOff(keep)
	c.SubImm(x1, x16, ring.SlotsOff)
	c.threadID(x17)
	c.MovImm(x0, ring.TakingOff)
	c.Add(x0, x0, x1)
	c.AddLSL(x0, x0, x17, 3)
	c.AddLSL(x16, x16, x17, slotShift)
	c.Load(8, x1, arm64.At(x1, ring.HdrMin))
	c.Load(8, x2, arm64.At(x16, ring.SlotClaim))
	c.Tbz(x2, 63, keep)
	c.AndImm(x3, x2, claimLow)
	c.Load(4, x17, last(ring.EventWord)) // not at a chunk's first position: before that is its header, which ends with zeros
	entryWord(x4)
	c.EorW(x17, x17, x4)
	c.CbnzW(x17, keep)
	sameSP(keep)
	c.Mrs(x4, arm64.CNTVCTEL0)
	c.Load(8, x5, last(ring.EventTime))
	c.Sub(x4, x4, x5)
	c.Sub(x4, x4, x1)
	c.Tbz(x4, 63, keep)

	c.Load(8, x4, arm64.At(x0, 0))
	c.Cbnz(x4, keep) // below this handler an exit is taking back
	c.StoreRelease(8, x3, x0)
	// From here on the chunk stays where it is, if it still is the thread's. That the same place in it was reached again by a handler is told
	// by the stack pointer: no other call has that while this one is open.
	c.Load(8, x4, arm64.At(x16, ring.SlotClaim))
	c.Eor(x4, x4, x2)
	c.Cbnz(x4, undo)
	sameSP(undo)
	c.Store(4, zr, last(ring.EventWord))
	c.MovImm(x4, ring.Claim)
	c.Sub(x4, x2, x4)
	if c.atomics() {
		c.Mov(x5, x2)
		c.CompareSwap(8, x5, x4, x16, arm64.Order{})
		c.Eor(x5, x5, x2)
		c.Cbnz(x5, late)
	} else {
		c.exclusively(8, x5, x16, x4, x17, arm64.Order{}, func() {
			c.Eor(x5, x5, x2)
			c.Cbnz(x5, late)
		})
	}
	c.StoreRelease(8, zr, x0)
	c.giveBackAll()
	c.B(off)

	c.pushed(3)
	c.Place(late)
	entryWord(x4)
	c.SubImm(x5, x3, ring.EventSize-ring.EventWord)
	c.StoreRelease(4, x4, x5)
	c.Place(undo)
	c.StoreRelease(8, zr, x0)
	c.Place(keep)
	c.giveBackAll()
}

// giveBackAll pops what takeBack has pushed.
func (c *coder) giveBackAll() {
	c.pop(x4, x5)
	c.pop(x2, x3)
	c.pop(x0, x1)
}

// pushed notes that what follows runs with so many pairs of registers on the stack again.
func (c *coder) pushed(pairs int) {
	c.low += int32(pairs) * pairSize
	c.note(false)
	if u := c.unwind; u != nil && u.open {
		c.below(u.depth + pairs*pairSize)
	}
}
