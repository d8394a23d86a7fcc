package amd64

import (
	"encoding/binary"

	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// importSize is how many bytes the stub of an import has at most besides its event, and importRows how many rows.
const (
	importSize = 64
	importRows = 8
)

// imported emits the stub that a slot leads to: the entry's event, then the way to where the slot led. That may be anywhere, so its address is in
// the stub. The stack and all registers are as the caller has them.
//
// It begins with endbr64, since slots are jumped through.
func (s *emitter) imported(index int) {
	c, imp := s.coder, s.fn.Import
	c.alignStub()
	at := c.PC()
	c.Raw(0xF3, 0x0F, 0x1E, 0xFA)
	if c.cfg.Lazy {
		s.slotBehind()
	}
	c.stands(imp.Entry + s.fn.Slide)
	s.event(false, 0)
	c.Raw(0xFF, 0x25, 0, 0, 0, 0) // jmp *(%rip)
	c.Raw(binary.LittleEndian.AppendUint64(nil, imp.Target)...)
	c.flush()
	s.code.Rebindings = append(s.code.Rebindings, stub.Rebinding{Import: *imp, Stub: at, ID: s.fn.ID, Index: uint32(index)})
}

// slotBehind lets a slot of lazy probes begin here, as slotStart does, but with instructions that are run on the way.
func (c *coder) slotBehind() {
	size, rest := uint64(16), uint64(0)
	if c.routines.shared[0] != 0 {
		size, rest = 8, 1
	}
	for c.PC()%size != rest {
		c.Raw(0x90)
	}
}

// returned emits the event of the end of a call by a slot, at the place that it returns to, which is at addr. The return address, which has just
// been popped, is still there: with the stack pointer below it everything is as in front of the return. What is below that belongs
// to nobody: the call has used it. LEA leaves flags alone.
func (s *emitter) returned(addr uint64) {
	c, imp := s.coder, s.fn.Import
	const word = 8
	c.stands(addr + s.fn.Slide)
	c.Lea(amd64.RSP, amd64.At(amd64.RSP, -word))
	c.stands(imp.Entry + s.fn.Slide)
	s.returns()
	c.Lea(amd64.RSP, amd64.At(amd64.RSP, word))
}
