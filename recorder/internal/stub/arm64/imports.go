package arm64

import (
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// importSize is how many bytes the stub of an import has at most besides its event, and importRows how many rows.
const (
	importSize = 64
	importRows = 2
)

// imported emits the stub that a slot leads to: the entry's event, then the way to where the slot led. That may be anywhere, so its address is
// behind the stub. The stack and all registers are as the caller has them, but x16 and x17, which the PLT has changed as well, and in which nothing
// is at a function's entry.
//
// It begins with a landing pad, since slots are jumped through.
func (s *emitter) imported() {
	imp := s.fn.Import
	s.low = 0
	s.alignStub()
	at := s.PC()
	s.Hint(arm64.HintBTIC)
	s.stands(imp.Entry + s.fn.Slide)
	s.entryEvent(moved{entry: true})
	target := s.NewLabel()
	s.LoadLiteralAt(x17, target)
	s.Br(x17)
	s.cold = append(s.cold, func() {
		s.Align(8)
		s.Place(target)
		s.Data64(imp.Target)
	})
	s.flushOften()
	if s.code != nil {
		s.code.Rebindings = append(s.code.Rebindings, stub.Rebinding{Import: *imp, Stub: at, ID: s.fn.ID, Index: s.index})
	}
}

// returned emits the event of the end of a call by a slot, at the place that it returns to. The stack pointer is what it was at the function's entry,
// and nothing is in x16 and x17: the PLT has changed them on the way there.
func (s *emitter) returned(m moved) {
	imp := s.fn.Import
	s.stands(imp.Entry + s.fn.Slide)
	s.returnEvent(moved{addr: m.addr, exit: true})
	s.stands(m.addr)
}
