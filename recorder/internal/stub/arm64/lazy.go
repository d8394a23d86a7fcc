package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// Lazily, an entry's event leads to a generic trampoline until the function's probe is made: that asks for the probe, by setting the
// function's bit in the ring memory, and goes on in the event routine. The probe is made by the change of one instruction, see switch.go
// for why that may be done: of an inline event the gate's test, which looks at a bit that leads past the event until then; of one by a shared
// routine the BL, which leads to the instruction in front of it.

// entrySlot is a slot being made.
type entrySlot struct {
	id    uint32
	start uint32 // offset of the instruction, which is a switch
	whole bool   // nothing is changed: a first call needs the function's own code already, where it is captured, or others are recorded inside it
}

// ask appends, later, where the gate's test at an address leads: to closed if the gate is closed, to off if the event is switched off, and
// else to the asking for the probe. That may have been made since the test, and the event is to be written nonetheless. x16 is the gate's
// word there, and x17 is clobbered.
func (c *coder) ask(p place, test uint64, closed, off arm64.Label) arm64.Label {
	from := c.NewLabel()
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		open, done := c.NewLabel(), c.NewLabel()
		c.Place(from)
		c.Tbnz(x16, gateOpen, open)
		c.B(closed)
		c.Place(open)
		c.LoadLiteralW(x17, test)
		c.Ubfx(x17, x17, testedBit, 2)
		c.Cbz(x17, done)
		c.MovImmW(x16, word(p.id, false))
		c.push(lr, x16)
		c.BlTo(c.routines.generic[p.lowered()])
		c.pop(lr, zr)
		c.Place(done)
		c.B(off)
	})
	return from
}

// Of the bits that the gate's test may look at only testOff has zeros in the two lowest digits of its number.
var _ = [1]struct{}{}[testOff&3]

// emitLower appends the event routines of entries whose stack pointer has moved, by each of these distances (see place.lowered), and lazily the
// generic trampolines in front of them.
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
	c.openDoor(routine, addr)
	c.beginRoutine()
	c.low = 16
	asked, had, closed := c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.unlessOff(closed)
	c.SubImm(x16, x16, ring.SlotsOff)
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
		for i := range c.switches {
			if w := &c.switches[i]; w.start == s.start && w.unmade {
				on, _, unmade := w.words(made)
				put(code, s.start-from, unmade)
				made = on
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
