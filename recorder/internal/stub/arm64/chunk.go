package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// pop takes a chunk off the stack whose head is at off: x2 becomes its index+1, or none is taken. The tag in the head's upper half counts
// pops. x0, x1, x3 to x6 and x15 are clobbered.
func (s *slowPath) pop(off int32, none arm64.Label) {
	retry := s.NewLabel()
	s.AddImm(x15, rRing, int64(off))
	s.AddImm(x6, rRing, ring.NextOff-1<<12)
	s.Place(retry)
	s.LoadAcquire(8, x0, x15)
	s.MovW(x2, x0)
	s.CbzW(x2, none)
	s.AddLSL(x1, x6, x2, 2)
	s.Load(4, x1, arm64.At(x1, 1<<12-4))
	s.LsrImm(x3, x0, 32)
	s.AddImm(x3, x3, 1)
	s.OrrLSL(x3, x1, x3, 32)
	s.swapIf(8, x0, x3, x15, x4, x5, bothWays, retry)
}

// placeOf makes x0, a chunk's index+1, its offset in the ring, and x3 how many events it holds. x1 is clobbered.
func (s *slowPath) placeOf() {
	large, done := s.NewLabel(), s.NewLabel()
	s.Load(4, x1, s.hdr(ring.HdrSmall))
	s.Cmp(x0, x1)
	s.BCond(arm64.CondHI, large)
	s.LslImm(x0, x0, ring.SmallShift)
	s.MovImm(x1, ring.ChunksOff-ring.SmallSize)
	s.Add(x0, x0, x1)
	s.Movz(x3, ring.SmallEvents, 0)
	s.B(done)
	s.Place(large)
	s.Sub(x0, x0, x1)
	s.LslImm(x0, x0, ring.ChunkShift)
	s.AddLSL(x0, x0, x1, ring.SmallShift)
	s.MovImm(x1, ring.ChunksOff-ring.ChunkSize)
	s.Add(x0, x0, x1)
	s.Movz(x3, ring.ChunkEvents, 0)
	s.Place(done)
}

// chunk makes r the address of the chunk whose offset is in from.
func (s *slowPath) chunk(r, from isa.Reg) { s.Add(r, rRing, from) }

// emptyWord makes x3, how many events a chunk holds, the claim word of the chunk with nothing in it, whose first event is at x4.
func (s *slowPath) emptyWord() {
	s.Sub(x3, zr, x3)
	s.OrrLSL(x3, x4, x3, ring.ClaimShift)
}

// drained jumps to yes when the recorder has taken all that the thread has written. x5 is the chunk's address then, and x3 how many events
// it holds. The load acquires what the recorder has done before: it has made the events zero.
func (s *slowPath) drained(yes arm64.Label) {
	no := s.NewLabel()
	s.Load(4, x0, s.slot(ring.SlotChunk))
	s.CbzW(x0, no)
	s.placeOf()
	s.chunk(x5, x0)
	s.AddImm(x15, x5, ring.ChunkDrained)
	s.LoadAcquire(4, x1, x15)
	// A full chunk, or spare chunk, which is 0 without any: see ring.Claim.
	s.Load(8, x2, s.slot(ring.SlotSpare))
	s.AsrImm(x2, x2, ring.ClaimShift)
	s.Add(x2, x2, x3)
	s.Cmp(x1, x2)
	s.BCond(arm64.CondEQ, yes)
	s.Place(no)
}
