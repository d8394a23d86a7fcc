package amd64

import (
	"encoding/binary"
	"fmt"

	"github.com/callreel/callreel/recorder/internal/stub"
)

// An event is switched off by one exchange of aligned bytes, as a probe is made by one, see lazy.go: its first instruction, which
// saves RAX, becomes a jump behind the event's last. Both have five bytes, and are padded so that they lie in one word. So a function
// that is off costs a jump; a thread that is inside the event meanwhile finishes it.

// switchSize is how many bytes are exchanged.
const switchSize = 5

// switching is a Switch being made.
type switching struct {
	exit  bool
	mark  uint32
	start uint32 // offset in the code
	end   uint32
	slot  int // of coder.slots, counted from 1; 0 if it is none that changes there
}

// nops are of 1 to 4 bytes (Intel SDM Vol. 2B, NOP).
var nops = [switchSize][]byte{1: {0x90}, {0x66, 0x90}, {0x0F, 0x1F, 0}, {0x0F, 0x1F, 0x40, 0}}

// beginSwitch begins an event. Where a slot begins nothing is padded, see slotStart.
func (c *coder) beginSwitch(exit bool) {
	if !c.lang.switched {
		return
	}
	if at := c.PC() & 7; at > 8-switchSize {
		c.Raw(nops[8-at]...)
	}
	if c.listing {
		c.switches = append(c.switches, switching{exit: exit, mark: c.marking, start: c.offset()})
	}
}

// endSwitch ends it.
func (c *coder) endSwitch() {
	if c.listing && c.lang.switched {
		c.switches[len(c.switches)-1].end = c.offset()
	}
}

// slotSwitch notes that the slot which is noted last changes where the event does.
func (c *coder) slotSwitch() {
	if c.listing {
		c.switches[len(c.switches)-1].slot = len(c.slots)
	}
}

// Switches returns the events of a function: few are asked for, so its stubs are made once more. A function that makes no difference, since
// it only has a hook, has none.
func (code *Code) Switches(index int) ([]stub.Switch, error) {
	if !code.lang.switched || code.fns[index].ID == 0 {
		return nil, nil
	}
	again := &Code{fns: code.fns}
	c := code.coder(code.Base+uint64(code.stubs[index]), nil)
	c.listing = true
	if err := (&emitter{coder: c, code: again}).function(index); err != nil {
		return nil, err
	}
	b, err := c.Finish()
	if err != nil {
		return nil, fmt.Errorf("callreel: stubs: %w", err)
	}
	list := make([]stub.Switch, 0, len(c.switches))
	for _, s := range c.switches {
		at := s.start &^ 7
		shift := 8 * (s.start - at)
		place := func(raw []byte) uint64 {
			var word [8]byte
			copy(word[:], raw[:switchSize])
			return binary.LittleEndian.Uint64(word[:]) << shift
		}
		var jump [switchSize]byte
		jump[0] = 0xE9
		binary.LittleEndian.PutUint32(jump[1:], s.end-(s.start+switchSize))
		first := b[s.start-code.stubs[index]:][:switchSize]
		if s.slot != 0 { // where the slot isn't made yet
			first = saveInst[:]
		}
		sw := stub.Switch{At: at, Exit: s.exit, Mark: s.mark, Mask: (1<<(8*switchSize) - 1) << shift, Off: place(jump[:]), On: place(first)}
		if s.slot != 0 {
			sw.Unmade = place(b[s.start-code.stubs[index]:])
		}
		list = append(list, sw)
	}
	return list, nil
}

// saveInst is mov %rax,-24(%rsp), which every event of a call begins with. That of a marker may begin with lea -128(%rsp),%rsp.
var saveInst = [switchSize]byte{0x48, 0x89, 0x44, 0x24, 1<<8 + saveRAX}
