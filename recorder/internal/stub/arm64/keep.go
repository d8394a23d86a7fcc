package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// What a signal handler does between any two instructions here: it may call the same function, or one that shares the place, and overwrite what
// the entry has stored. The stack pointer is stored before the argument and read behind it, by the same thread. So when both are of one call,
// and the stack pointer is the exit's, they are of the exit's call. A handler may also write events between the exit's and what that carries:
// by the stack pointer and the word it is told that this isn't the handler's.

// keeping is what is kept of a function's arguments, nil for nothing.
func (c *coder) keeping(id uint32) *stub.Keep {
	if k, ok := c.cfg.Keeps[id]; ok && c.cfg.Kept != 0 {
		return &k
	}
	return nil
}

// keptOf appends the loading of the address of the function's place in the thread's room. tmp is clobbered, and x17 where nothing keeps the
// thread's ID.
func (c *coder) keptOf(r, tmp isa.Reg, k *stub.Keep) {
	c.threadID(tmp)
	c.MovImm(r, c.cfg.Kept+uint64(k.Slot)<<ring.KeptSlotShift)
	c.AddLSL(r, r, tmp, ring.KeptShift)
}

// keepArguments appends the storing of an entry's arguments. x16 and x17 are clobbered.
func (c *coder) keepArguments(k *stub.Keep, p place) {
	at := func(off int32) arm64.Mem { return arm64.At(x16, off) }
	c.keptOf(x16, x17, k)
	c.Mrs(x17, arm64.CNTVCTEL0)
	c.Store(8, x17, at(ring.KeptTime))
	c.spAtEntry(x17, p.spDelta)
	c.Store(4, x17, at(ring.KeptSP))
	c.MovImmW(x17, word(p.id, true))
	c.Store(4, x17, at(ring.KeptWord))
	if k.Second {
		c.Store(8, x1, at(ring.KeptSecond))
	}
	c.Store(8, x0, at(ring.KeptFirst))
}

// carry appends what lets kept arguments follow an exit's event if that comes long after the entry. It goes on at off. x16 and x17 are
// clobbered.
func (c *coder) carry(k *stub.Keep, off arm64.Label) {
	long := c.NewLabel()
	c.keptOf(x16, x17, k)
	c.Load(8, x17, arm64.At(x16, ring.KeptTime))
	c.Mrs(x16, arm64.CNTVCTEL0)
	c.Sub(x17, x16, x17)
	c.MovImmW(x16, k.Least)
	c.Sub(x16, x17, x16)
	c.Tbz(x16, 63, long)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(long)
		c.writeKept(k, off)
	})
}

// takeBefore is take where kept arguments may follow: what is left of a chunk that has no room for them is filled, so that the event goes into
// another. The thread's slot is in x16.
func (c *coder) takeBefore(k *stub.Keep, slow arm64.Label) {
	short, room := c.NewLabel(), c.NewLabel()
	// Of the claim word's upper half the upper half is how many events still fit, negated.
	look := func() {
		c.LoadSigned(4, x17, arm64.At(x16, ring.SlotClaim+4))
		c.AddImm(x17, x17, int64(k.Events())<<(ring.ClaimShift-32))
		c.Tbz(x17, 63, short)
	}
	look()
	c.Place(room)
	c.take(slow)
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.Place(short)
		c.take(slow)
		c.push(x0, x1)
		c.MovImmW(x0, ring.PayloadWord)
		c.Store(4, x0, arm64.At(x17, ring.EventWord))
		c.pop(x0, x1)
		look() // a handler may have come to a new chunk meanwhile
		c.B(room)
	})
}

// writeKept appends the payload events. If a handler has used up the chunk there are none.
func (c *coder) writeKept(k *stub.Keep, off arm64.Label) {
	n := k.Events()
	full := c.NewLabel()
	c.throughGate(off)
	c.takeAll(n-1, full)
	event := func(i int, field int32) arm64.Mem { return arm64.At(x17, int32(ring.EventSize*i)+field) }
	c.push(x0, x1)
	if c.cfg.NoTLS { // which clobbers x17
		c.push(x17, zr)
	}
	c.keptOf(x0, x1, k)
	if c.cfg.NoTLS {
		c.pop(x17, zr)
	}
	move := func(size int, to arm64.Mem, from int32) {
		c.Load(size, x1, arm64.At(x0, from))
		c.Store(size, x1, to)
	}
	move(8, event(0, ring.EventTime), ring.KeptFirst)
	move(8, event(1, ring.EventTime), ring.KeptTime)
	move(4, event(1, ring.EventSP), ring.KeptWord)
	if k.Second {
		move(8, event(2, ring.EventTime), ring.KeptSecond)
		c.Store(4, zr, event(2, ring.EventSP))
	}
	move(4, event(0, ring.EventSP), ring.KeptSP)
	for i := n - 1; i > 0; i-- {
		c.MovImmW(x1, payloadWord(i, n))
		c.Store(4, x1, event(i, ring.EventWord))
	}
	c.AddImm(x17, x17, ring.EventWord)
	c.MovImmW(x1, payloadWord(0, n))
	c.StoreRelease(4, x1, x17)
	c.pop(x0, x1)
	c.B(off)
	c.Place(full)
	c.push(x0, x1)
	c.fillRest(x16, x0)
	c.pop(x0, x1)
	c.B(off)
}
