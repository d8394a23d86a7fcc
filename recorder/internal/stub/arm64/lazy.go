package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Lazily, an entry's event leads to a generic trampoline until the function's probe is made: that asks for the probe, by setting the
// function's bit in the ring memory, and goes on in the event routine. The probe is made by the exchange of one instruction, see switch.go
// for why that may be done: of an inline event the gate's test, in whose place there is a B until then; of one by a shared routine the
// target of its BL.

// entrySlot is a slot being made.
type entrySlot struct {
	id    uint32
	start uint32 // offset of the instruction
	ask   uint32 // of where a B leads that is there until the probe is made; 0 where it is a BL that is changed
	made  uint32 // where that leads then
	whole bool   // nothing is changed: a captured function's first call needs its own code already
}

// inlineSlot notes that the gate's test of an entry's inline event is exchanged, and appends, later, what is done until then.
func (c *coder) inlineSlot(p place, done arm64.Label) {
	k := len(c.slots)
	c.slots = append(c.slots, entrySlot{id: p.id}) // start is noted by the switch
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		c.slots[k].ask = c.offset()
		c.MovImmW(x16, word(p.id, false))
		c.push(lr, x16)
		c.BlTo(c.routines.generic[p.spDelta])
		c.pop(lr, zr)
		c.B(done)
	})
}

// sharedSlot notes that the next instruction, a call, is changed when the probe is made.
func (c *coder) sharedSlot(p place) {
	to := c.routines.shared[0]
	if p.spDelta != 0 {
		to = c.routines.lower[p.spDelta]
	}
	c.slots = append(c.slots, entrySlot{id: p.id, start: c.offset(), made: uint32(to - c.base)})
}

// emitLower appends the event routines of entries whose stack pointer has moved, by each of these distances, and lazily the generic
// trampolines in front of them.
func (c *coder) emitLower(deltas []int32) {
	c.routines.lower, c.routines.generic = map[int32]uint64{}, map[int32]uint64{}
	for _, d := range deltas {
		routine := c.routines.shared[0]
		if d != 0 || routine == 0 {
			routine = c.sharedRoutine(false, d)
		}
		c.routines.lower[d] = routine
		if c.cfg.Lazy {
			c.routines.generic[d] = c.emitGeneric(routine)
		}
	}
}

// emitGeneric appends the generic trampoline in front of an event routine, and returns its address. It is called as the routine is.
//
// The bit is set before the event is written, so there is no event of a function that isn't asked for; and HdrAsked changes, by release,
// after the bit is set, so the recorder, which reads them the other way round, misses none.
func (c *coder) emitGeneric(routine uint64) uint64 {
	c.Align(64)
	addr := c.PC()
	c.beginRoutine()
	c.low = 16
	asked, had, closed := c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.loadAt(x16, c.cfg.Gate)
	c.Tbz(x16, gateOpen, closed)
	c.SubImm(x16, x16, ring.SlotsOff)
	c.Load(4, x17, arm64.At(x16, ring.HdrPaused))
	c.CbnzW(x17, closed)
	if c.cfg.Held != 0 {
		c.MovImm(x17, c.cfg.Held)
		c.Load(4, x17, arm64.At(x17, 0))
		c.CbnzW(x17, closed)
	}
	c.Load(4, x17, arm64.At(sp, sharedWord))
	c.push(x0, x1)
	c.push(x2, x3)
	c.LsrImm(x17, x17, 1)
	c.LsrImm(x0, x17, 5)
	c.AddLSL(x0, x16, x0, 2)
	c.AddImm(x0, x0, ring.AskedOff) // the word with the bit
	c.AndImm(x17, x17, 31)
	c.Movz(x1, 1, 0)
	c.Lsl(x1, x1, x17)
	c.Load(4, x2, arm64.At(x0, 0))
	c.And(x2, x2, x1)
	c.Cbnz(x2, asked)
	if c.atomics() {
		c.LoadSet(4, x1, x2, x0, arm64.Order{})
	} else {
		c.exclusively(4, x2, x0, x17, x3, arm64.Order{}, func() { c.Orr(x17, x2, x1) })
	}
	c.And(x2, x2, x1)
	c.Cbnz(x2, had)
	c.Movz(x1, 1, 0)
	c.AddImm(x0, x16, ring.HdrAsked)
	c.fetchAdd(8, x1, x2, x0, x17, x3, arm64.Order{Release: true})
	c.Place(had)
	c.Place(asked)
	c.pop(x2, x3)
	c.pop(x0, x1)
	c.Place(closed)
	c.BTo(routine)
	c.endRoutine()
	return addr
}

// settle turns the slots in a function's stubs, whose labels are resolved, into what they are before the probes are made. code is the
// function's, from the offset from on.
func (c *coder) settle(list []stub.Slot, from uint32) []stub.Slot {
	for _, s := range c.slots {
		code := c.Since(int(from - c.first()))
		made := at(code, s.start-from)
		switch {
		case s.whole:
		case s.ask != 0:
			put(code, s.start-from, branch(s.ask-s.start))
		default:
			made = call(s.made - s.start)
		}
		for i := range c.switches {
			if c.switches[i].start == s.start {
				c.switches[i].made = made
			}
		}
		// The other instruction of the word stays as it is.
		word := s.start &^ 7
		pair := uint64(at(code, word-from)) | uint64(at(code, word+4-from))<<32
		shift := 8 * (s.start - word)
		pair = pair&^(0xFFFFFFFF<<shift) | uint64(made)<<shift
		list = append(list, stub.Slot{ID: s.id, At: word, Word: pair})
	}
	c.slots = c.slots[:0]
	return list
}
