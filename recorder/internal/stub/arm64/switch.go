package arm64

import "encoding/binary"

// An event is switched off, and a probe is made, by the exchange of one instruction while threads run. The architecture allows that for
// few: before and after it must be one of B, B.cond, BL, BRK, CBNZ, CBZ, HVC, ISB, NOP, SMC, SVC, TBNZ and TBZ (Arm ARM B2.2.5,
// "Concurrent modification and execution of instructions"). A thread runs either the one or the other then. Between two of them of which
// one is conditional it might run the one's condition with the other's target; so where it matters both have the same target.
//
// Of an inline event it is the gate's test, TBZ past the event, which becomes B to the same place. Of one by a shared routine it is the
// call, BL, which becomes NOP.

// switching is a switch being made.
type switching struct {
	exit   bool
	start  uint32 // offset of the instruction in the code
	off    uint32 // what it is when the event is off; 0 while that isn't known
	unmade bool   // the probe is made by an exchange of the same instruction, see lazy.go
	made   uint32 // what it is then, if it isn't what is there
}

// beginSwitch notes that the next instruction, a test that leads past the event, is its switch.
func (c *coder) beginSwitch(p place) {
	if c.cfg.Lazy && !p.exit {
		c.slots[len(c.slots)-1].start = c.offset()
	}
	c.switches = append(c.switches, switching{exit: p.exit, start: c.offset(), unmade: c.cfg.Lazy && !p.exit})
}

// endSwitch notes that the event begun last ends here.
func (c *coder) endSwitch() {
	if n := len(c.switches); n > 0 && c.switches[n-1].off == 0 {
		s := &c.switches[n-1]
		s.off = branch(c.offset() - s.start)
	}
}

// callSwitch notes that the next instruction, a call, is the event's switch.
func (c *coder) callSwitch(p place) {
	c.switches = append(c.switches, switching{exit: p.exit, start: c.offset(), off: nop, unmade: c.cfg.Lazy && !p.exit})
}

const nop = 0xD503201F

// branch is B over so many bytes, at most 128 MiB.
func branch(distance uint32) uint32 { return 0x14000000 | distance>>2&(1<<26-1) }

// call is BL.
func call(distance uint32) uint32 { return branch(distance) | 1<<31 }

// at is an instruction of code, by its offset there.
func at(code []byte, off uint32) uint32 { return binary.LittleEndian.Uint32(code[off:]) }

// put writes an instruction of code, by its offset there.
func put(code []byte, off, word uint32) { binary.LittleEndian.PutUint32(code[off:], word) }
