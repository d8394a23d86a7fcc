package arm64

import (
	"github.com/callreel/callreel/isa"
	"github.com/callreel/callreel/isa/arm64"
	"github.com/callreel/callreel/recorder/internal/ring"
)

// In overwrite mode nothing is drained. A thread whose chunk is full takes the one that has been full for the longest time, whoever's it
// was, and overwrites it. See docs/design/armed.md, "Overwriting". While the rings are frozen, since a call fired a while ago, nothing is
// overwritten.
//
// A chunk's header and events are copied while threads write, under a sequence lock: the state becomes ChunkTaken, then the rest
// changes, then the state is stored by release. The barrier behind the first of these stores makes it visible before the rest.

// lookAgain jumps to yes when there may be chunks: not while the rings are frozen, nor for a moment after all were found to be in use.
func (s *slowPath) lookAgain(yes arm64.Label) {
	no := s.NewLabel()
	s.ifZero(4, s.hdr(ring.HdrPool), no)
	s.Mrs(x0, arm64.CNTVCTEL0)
	s.Load(8, x1, s.hdr(ring.HdrStarved))
	s.Load(8, x2, s.hdr(ring.HdrStarveLimit))
	s.Sub(x0, x0, x1)
	s.Cmp(x0, x2)
	s.BCond(arm64.CondHI, yes)
	s.Place(no)
}

// nextState is what is added to a chunk's state for its next one.
func nextState(from, to int64) int64 { return 1<<ring.ChunkChanges + to - from }

// takeOldest makes x2 the index+1 of a chunk that is empty, or goes to none. When the recorder has been silent for too long it closes the
// gate.
//
// Registers inside: x5 the hand, x6 the chunk, x16 how many chunks are still to be looked at, x17 how many there are.
func (s *slowPath) takeOldest(none arm64.Label) {
	alive, next, take, empty := s.NewLabel(), s.NewLabel(), s.NewLabel(), s.NewLabel()
	clear, starved, got := s.NewLabel(), s.NewLabel(), s.NewLabel()
	s.heartbeat(ring.HdrCloseLimit)
	s.BCond(arm64.CondLS, alive)
	s.shut()
	s.B(s.unblock)
	s.Place(alive)
	s.takeGrace(none)
	s.Load(8, x17, s.hdr(ring.HdrChunks))
	s.Add(x16, x17, x17)

	s.Place(next)
	s.SubImm(x16, x16, 1)
	s.Tbnz(x16, 63, starved)
	s.Movz(x0, 1, 0)
	s.AddImm(x15, rRing, ring.HdrHand)
	s.fetchAdd(8, x0, x5, x15, x2, x3, arm64.Order{})
	s.Udiv(x0, x5, x17)
	s.Msub(x2, x0, x17, x5) // the remainder
	s.AddImm(x0, x2, 1)
	s.chunkAt(x6, x0)
	s.AddImm(x15, x6, ring.ChunkState)
	s.LoadAcquire(4, x0, x15)
	s.AndImmW(x1, x0, ring.ChunkStates)
	s.CmpImmW(x1, ring.ChunkFull)
	s.BCond(arm64.CondNE, next)
	s.Cmp(x16, x17)
	s.BCond(arm64.CondLO, take) // the second time round
	s.Load(8, x1, arm64.At(x6, ring.ChunkHand))
	s.Sub(x1, x5, x1)
	s.Add(x1, x1, x1)
	s.Cmp(x1, x17)
	s.BCond(arm64.CondLO, next)
	s.Place(take)
	s.AddImmW(x1, x0, nextState(ring.ChunkFull, ring.ChunkTaken))
	s.swapIf(4, x0, x1, x15, x3, x4, bothWays, next)

	const step = 64
	s.Place(empty)
	s.DmbStore()
	s.AddImm(x0, x6, ring.ChunkHeader)
	s.Movz(x1, (ring.ChunkSize-ring.ChunkHeader)/step, 0)
	s.Place(clear)
	for off := int32(0); off < step; off += 16 {
		s.StorePair(zr, zr, arm64.At(x0, off))
	}
	s.AddImm(x0, x0, step)
	s.SubImm(x1, x1, 1)
	s.Cbnz(x1, clear)
	s.Store(4, zr, arm64.At(x6, ring.ChunkNext))
	s.Store(4, zr, arm64.At(x6, ring.ChunkSpare))
	s.AddImm(x2, x2, 1)
	s.B(got)

	// All chunks are threads' present ones. So the thread overwrites its own, if it has one.
	s.Place(starved)
	own := s.NewLabel()
	s.Load(4, x2, s.slot(ring.SlotChunk))
	s.CbnzW(x2, own)
	s.stamp(rRing, ring.HdrStarved)
	s.B(none)
	s.Place(own)
	s.chunkAt(x6, x2)
	s.SubImm(x2, x2, 1)
	s.Store(4, zr, s.slot(ring.SlotChunk))
	s.Load(4, x0, s.slot(ring.SlotFirst)) // a number is left out, as something is
	s.AddImmW(x0, x0, 1)
	s.Store(4, x0, s.slot(ring.SlotFirst))
	s.Load(4, x0, arm64.At(x6, ring.ChunkState))
	s.AddImmW(x0, x0, nextState(ring.ChunkOwned, ring.ChunkTaken))
	s.Store(4, x0, arm64.At(x6, ring.ChunkState))
	s.B(empty)
	s.Place(got)
}

// takeGrace goes to none while the rings are frozen. Where a call has fired, and the recorder hasn't looked yet, it takes one of the
// chunks that threads may have until they are. x0 to x3 and x15 are clobbered.
func (s *slowPath) takeGrace(none arm64.Label) {
	again, open := s.NewLabel(), s.NewLabel()
	s.AddImm(x15, rRing, ring.HdrPool)
	s.Place(again)
	s.Load(8, x0, arm64.At(x15, 0))
	s.Cbz(x0, none)
	s.CmpImm(x0, ring.PoolOpen)
	s.BCond(arm64.CondEQ, open)
	s.SubImm(x1, x0, ring.PoolGrace)
	s.swapIf(8, x0, x1, x15, x2, x3, bothWays, again)
	s.Place(open)
}

// adopt notes in the thread's present chunk that it is full, and in the one whose index+1 is in x2 that it is the thread's next. x0, x1 and
// x15 are clobbered.
//
// Registers inside: x6 the chunk.
func (s *slowPath) adopt() {
	first := s.NewLabel()
	s.Load(4, x0, s.slot(ring.SlotChunk))
	s.CbzW(x0, first)
	s.chunkAt(x6, x0)
	s.stamp(x6, ring.ChunkTo)
	s.Load(8, x0, s.hdr(ring.HdrHand))
	s.Store(8, x0, arm64.At(x6, ring.ChunkHand))
	s.Load(4, x0, arm64.At(x6, ring.ChunkState))
	s.AddImmW(x0, x0, nextState(ring.ChunkOwned, ring.ChunkFull))
	s.storeRelease(4, x0, x6, ring.ChunkState)

	s.Place(first)
	s.chunkAt(x6, x2)
	s.tidOfSlot(x0)
	s.Store(4, x0, arm64.At(x6, ring.ChunkTID))
	s.Load(4, x0, s.slot(ring.SlotFirst))
	s.Store(4, x0, arm64.At(x6, ring.ChunkSeq))
	s.AddImmW(x0, x0, 1)
	s.Store(4, x0, s.slot(ring.SlotFirst))
	s.stamp(x6, ring.ChunkFrom)
	s.Store(8, zr, arm64.At(x6, ring.ChunkTo))
	// From ChunkTaken, and from ChunkApart, to ChunkOwned with the next number of changes.
	s.Load(4, x0, arm64.At(x6, ring.ChunkState))
	s.OrrImmW(x0, x0, ring.ChunkStates)
	s.AddImmW(x0, x0, nextState(ring.ChunkStates, ring.ChunkOwned))
	s.storeRelease(4, x0, x6, ring.ChunkState)
}

// chunkAt makes r the address of the chunk of an index+1.
func (s *slowPath) chunkAt(r, index isa.Reg) {
	s.MovImm(x1, ring.ChunksOff-ring.ChunkSize)
	s.Add(x1, x1, rRing)
	s.AddLSL(r, x1, index, ring.ChunkShift)
}
