package arm64

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/arm64"
)

// An event is switched off, and a probe is made, by a change of one instruction while threads run. The architecture allows that for few:
// before and after it must be one of B, B.cond, BL, BRK, CBNZ, CBZ, HVC, ISB, NOP, SMC, SVC, TBNZ and TBZ (Arm ARM B2.2.5, "Concurrent
// modification and execution of instructions"). A thread runs either the one or the other then. Between two of them of which one is
// conditional it might run the one's condition with the other's target; so here both have the same target, or no condition.
//
// It also asks for the instruction to be stored at once, and the kernel, which stores it for the recorder, promises that of single bytes only.
// So the instructions differ in one byte.
//
// Of an inline event it is the gate's test, TBZ, which looks at another bit: at one that is 0 in every gate, open or closed, so that it always
// leads past the event. Of one by a shared routine it is the call, BL, which goes to an instruction just in front of the routine: see
// emitDoors.

// What a gate's test looks at.
const (
	testOn     = gateOpen
	testUnmade = 61
	testOff    = 60
)

// The byte of an instruction that changes: of TBZ that with the number of the bit, of BL that with the low bits of the distance.
const (
	testByte = 2
	callByte = 0
)

// switching is a switch being made.
type switching struct {
	exit   bool
	mark   uint32 // the marker's ID, 0 for an event of calls
	start  uint32 // offset of the instruction in the code
	unmade bool   // it is also what changes when the probe is made
	call   bool   // it is the call of a shared routine
}

// words are what the instruction is, out of what it is now.
func (s *switching) words(now uint32) (on, off, unmade uint32) {
	if !s.call {
		return lookingAt(now, testOn), lookingAt(now, testOff), lookingAt(now, testUnmade)
	}
	if !s.unmade {
		return now, now - 1, 0
	}
	return now + 1, now - 1, now
}

// changes is which of its bytes does.
func (s *switching) changes() int {
	if s.call {
		return callByte
	}
	return testByte
}

// lookingAt is a TBZ or TBNZ with another bit to look at, of the upper half of a register.
func lookingAt(word, bit uint32) uint32 { return word&^(31<<testedBit) | (bit&31)<<testedBit }

// testedBit is where in a TBZ the number of the bit begins.
const testedBit = 19

// switchTest appends the gate's test by which an inline event begins, which is its switch. It goes to off if the event isn't to be written; where
// it goes on x16 is the gate's word.
func (c *coder) switchTest(p place, off arm64.Label) {
	s := switching{exit: p.exit}
	if p.mark {
		s.mark = p.id
	}
	closed := c.whenClosed(c.PC(), off)
	c.loadAt(x16, c.cfg.Gate)
	s.start = c.offset()
	if c.cfg.Lazy && !p.exit && !p.mark {
		slot := &c.slots[len(c.slots)-1]
		slot.start = s.start
		s.unmade = !slot.whole
	}
	switch {
	case s.unmade:
		closed = c.ask(p, c.PC(), closed, off)
	case c.cfg.Follow:
		closed = c.ifClosed(closed, off)
	}
	c.switches = append(c.switches, s)
	c.Tbz(x16, gateOpen, closed)
}

// ifClosed appends, later, where the gate's test leads of an event that may be switched off: to closed if the gate is closed, else to off. x16 is
// the gate's word there.
func (c *coder) ifClosed(closed, off arm64.Label) arm64.Label {
	from := c.NewLabel()
	later := c.later()
	c.cold = append(c.cold, func() {
		later()
		open := c.NewLabel()
		c.Place(from)
		c.Tbnz(x16, gateOpen, open)
		c.B(closed)
		c.Place(open)
		c.B(off)
	})
	return from
}

// callSwitch appends the call of a shared routine, which is the event's switch. Lazily, an entry's leads to where its probe is asked for.
func (c *coder) callSwitch(p place, routine uint64) {
	s := switching{exit: p.exit, call: true, unmade: c.cfg.Lazy && !p.exit}
	doors := uint64(1)
	if s.unmade {
		doors = 2
	}
	for (routine-c.PC())>>2&0xFF < doors { // what is in front of it would differ in more than a byte
		c.Nop()
	}
	s.start = c.offset()
	if s.unmade {
		c.slots[len(c.slots)-1].start = s.start
		routine -= 4
	}
	c.switches = append(c.switches, s)
	c.BlTo(routine)
}

// emitDoors appends what is in front of a shared routine: a return, for events that are switched off, and, lazily, for entries, the jump to
// where their probe is asked for. The latter is a return until that place is known.
func (c *coder) emitDoors(exit bool) {
	c.Ret(lr)
	if c.cfg.Lazy && !exit {
		c.Ret(lr)
	}
}

// openDoor makes the instruction in front of a shared routine a jump.
func (c *coder) openDoor(routine, to uint64) {
	at := routine - 4
	put(c.Since(0), uint32(at-c.Base()), branch(uint32(to-at)))
}

// branch is B over so many bytes, at most 128 MiB.
func branch(distance uint32) uint32 { return 0x14000000 | distance>>2&(1<<26-1) }

// at is an instruction of code, by its offset there.
func at(code []byte, off uint32) uint32 { return binary.LittleEndian.Uint32(code[off:]) }

// put writes an instruction of code, by its offset there.
func put(code []byte, off, word uint32) { binary.LittleEndian.PutUint32(code[off:], word) }
