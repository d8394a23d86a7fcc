package amd64

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// What a signal handler does between any two instructions here: it may call the same function, or one that shares the place, and overwrite
// what the entry has stored. The stack pointer is stored before the argument and read behind it. So when both are of one call, and the
// stack pointer is the exit's, they are of the exit's call. It may also write events between the exit's and what that carries: by the
// stack pointer and the word it is told that this isn't the handler's.

// keeping is what is kept of a function's arguments, nil for nothing.
func (c *coder) keeping(id uint32) *stub.Keep {
	if k, ok := c.cfg.Keeps[id]; ok && c.cfg.Kept != 0 {
		return &k
	}
	return nil
}

// emitKept appends where the address of the threads' room is found.
func (c *coder) emitKept() {
	c.Align(8)
	c.routines.keptAt = c.PC()
	c.Raw(binary.LittleEndian.AppendUint64(nil, c.cfg.Kept)...)
}

// keptOf appends the loading of the address of the thread's room. Flags are clobbered.
func (c *coder) keptOf(r amd64.Reg) {
	c.threadID(r)
	c.ShlImm(r, ring.KeptShift)
	c.AddMem(r, amd64.AtAddr(c.routines.keptAt))
}

// keptField is a field of a function's place in the room that begins at r.
func keptField(r amd64.Reg, k *stub.Keep, off int32) amd64.Mem {
	return amd64.At(r, int32(k.Slot)<<ring.KeptSlotShift+off)
}

// keepArguments appends the storing of an entry's arguments, EDX:EAX being the time. RAX, RCX and flags are clobbered.
func (c *coder) keepArguments(k *stub.Keep, id uint32, spDelta int32) {
	at := func(off int32) amd64.Mem { return keptField(amd64.RCX, k, off) }
	c.keptOf(amd64.RCX)
	c.Store32(at(ring.KeptTime), amd64.RAX)
	c.Store32(at(ring.KeptTime+4), amd64.RDX)
	if spDelta == 0 {
		c.Store32(at(ring.KeptSP), amd64.RSP)
	} else {
		c.Lea(amd64.RAX, amd64.At(amd64.RSP, spDelta))
		c.Store32(at(ring.KeptSP), amd64.RAX)
	}
	c.Store32Imm(at(ring.KeptWord), word(id, true))
	if k.Second {
		c.Store64(at(ring.KeptSecond), amd64.RSI)
	}
	c.Store64(at(ring.KeptFirst), amd64.RDI)
}

// carry appends what lets kept arguments follow an exit's event if that comes long after the entry, EAX being the lower half of the time. It
// goes on at off. RAX, RCX, RDX and flags are clobbered.
func (c *coder) carry(k *stub.Keep, off amd64.Label) {
	long := c.NewLabel()
	c.keptOf(amd64.RCX)
	c.SubMem32(amd64.RAX, keptField(amd64.RCX, k, ring.KeptTime))
	c.CmpImm32(amd64.RAX, k.Least)
	c.Jcc(amd64.CondAE, long)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(long)
		c.writeKept(k, off)
	})
}

// claimBefore is claim where kept arguments may follow: what is left of a chunk that has no room for them is filled, so that the event goes into
// another.
func (c *coder) claimBefore(k *stub.Keep, off, slow amd64.Label) {
	short, room := c.NewLabel(), c.NewLabel()
	claim := func(at int32) amd64.Mem { return amd64.AtIndex(amd64.RDX, amd64.RAX, 8, ring.SlotClaim+at) }
	// Of the claim word's upper half the upper half is how many events still fit, negated.
	most := uint32(-int32(k.Events()) << 16)
	c.throughGate(off)
	c.CmpMem32Imm(claim(4), most)
	c.Jcc(amd64.CondGE, short)
	c.Place(room)
	c.take(claim(0), slow)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(short)
		c.take(claim(0), slow)
		c.Store32Imm(amd64.At(amd64.RCX, ring.EventWord), ring.PayloadWord)
		c.CmpMem32Imm(claim(4), most) // a handler may have come to a new chunk meanwhile
		c.Jcc(amd64.CondGE, short)
		c.Jmp(room)
	})
}

// writeKept appends the payload events. If a handler has used up the chunk there are none.
func (c *coder) writeKept(k *stub.Keep, off amd64.Label) {
	n := k.Events()
	full := c.NewLabel()
	c.claimAll(n-1, off, full)
	c.keptOf(amd64.RDX)
	move := func(event, field int32, from int32, wide bool) {
		load, store := c.Load32, c.Store32
		if wide {
			load, store = c.Load64, c.Store64
		}
		load(amd64.RAX, keptField(amd64.RDX, k, from))
		store(amd64.At(amd64.RCX, event*ring.EventSize+field), amd64.RAX)
	}
	move(0, ring.EventTime, ring.KeptFirst, true)
	move(1, ring.EventTime, ring.KeptTime, true)
	move(1, ring.EventSP, ring.KeptWord, false)
	if k.Second {
		move(2, ring.EventTime, ring.KeptSecond, true)
		c.Store32Imm(amd64.At(amd64.RCX, 2*ring.EventSize+ring.EventSP), 0)
	}
	move(0, ring.EventSP, ring.KeptSP, false)
	for i := n - 1; i >= 0; i-- {
		c.Store32Imm(amd64.At(amd64.RCX, int32(ring.EventSize*i+ring.EventWord)), payloadWord(i, n))
	}
	c.Jmp(off)
	c.Place(full)
	c.fillRest()
	c.Jmp(off)
}
