package amd64

import (
	"github.com/callreel/callreel/isa/amd64"
	"github.com/callreel/callreel/recorder/internal/ring"
	"github.com/callreel/callreel/recorder/internal/stub"
)

// In overwrite mode nothing is drained. A thread whose chunk is full takes the one that has been full for the longest time, whoever's
// it was, and overwrites it: so the rings hold the last events of all threads, whether they call much or little. While the rings are
// frozen, since a call fired a while ago, nothing is overwritten; then entries are dropped, and exits of accepted calls go to the reserve,
// as they do when a pool is empty.
//
// A hand goes round over all chunks, and takes the next that is full. Those that have been full for less than half a round are passed by,
// for a round: so a thread that needs long to fill its chunk doesn't lose it just then. There is no queue that a thread could hold up.
// See docs/design/armed.md, "Overwriting".

// lookAgain, behind a comparison of the pool's head with 0, jumps to yes when there may be chunks: not while the rings are frozen, nor
// for a moment after all were found to be in use.
func (s *slowPath) lookAgain(yes amd64.Label) {
	no := s.NewLabel()
	s.Jcc(amd64.CondE, no)
	s.Rdtsc()
	s.ShlImm(amd64.RDX, 32)
	s.Or(amd64.RAX, amd64.RDX)
	s.SubMem(amd64.RAX, s.hdr(ring.HdrStarved))
	s.CmpMem(amd64.RAX, s.hdr(ring.HdrStarveLimit))
	s.Jcc(amd64.CondA, yes)
	s.Place(no)
}

// takeOldest makes EDX the index+1 of a chunk that is empty, or goes to none. When the recorder has been silent for too long it closes
// the gate.
//
// Registers inside: RSI, R10 the hand, R11 the chunk, R12 how many chunks are still to be looked at.
func (s *slowPath) takeOldest(none amd64.Label) {
	alive, next, take, empty := s.NewLabel(), s.NewLabel(), s.NewLabel(), s.NewLabel()
	clear, starved, got := s.NewLabel(), s.NewLabel(), s.NewLabel()
	s.heartbeat(ring.HdrCloseLimit)
	s.Jcc(amd64.CondBE, alive)
	s.Store8Imm(amd64.AtAddr(s.cfg.Gate+stub.GateTop), stub.GateShut)
	s.Jmp(s.unblock)
	s.Place(alive)
	s.takeGrace(none)
	s.Load64(amd64.R12, s.hdr(ring.HdrChunks))
	s.Add(amd64.R12, amd64.R12)

	s.Place(next)
	s.Lea(amd64.R12, amd64.At(amd64.R12, -1))
	s.Test(amd64.R12, amd64.R12)
	s.Jcc(amd64.CondS, starved)
	s.MovImm32(amd64.R10, 1)
	s.LockXadd64(s.hdr(ring.HdrHand), amd64.R10)
	s.Mov(amd64.RAX, amd64.R10)
	s.MovImm32(amd64.RDX, 0)
	s.DivMem(s.hdr(ring.HdrChunks))
	s.Mov(amd64.R11, amd64.RDX)
	s.ShlImm(amd64.R11, ring.ChunkShift)
	s.Lea(amd64.R11, amd64.AtIndex(amd64.R9, amd64.R11, 1, ring.ChunksOff))
	s.Load32(amd64.RAX, amd64.At(amd64.R11, ring.ChunkState))
	s.Mov32(amd64.RSI, amd64.RAX)
	s.And32Imm(amd64.RSI, ring.ChunkStates)
	s.CmpImm32(amd64.RSI, ring.ChunkFull)
	s.Jcc(amd64.CondNE, next)
	s.CmpMem(amd64.R12, s.hdr(ring.HdrChunks))
	s.Jcc(amd64.CondB, take) // the second time round
	s.SubMem(amd64.R10, amd64.At(amd64.R11, ring.ChunkHand))
	s.Add(amd64.R10, amd64.R10)
	s.CmpMem(amd64.R10, s.hdr(ring.HdrChunks))
	s.Jcc(amd64.CondB, next)
	s.Place(take)
	s.Lea(amd64.RSI, amd64.At(amd64.RAX, 1<<ring.ChunkChanges+ring.ChunkTaken-ring.ChunkFull))
	s.LockCmpxchg32(amd64.At(amd64.R11, ring.ChunkState), amd64.RSI)
	s.Jcc(amd64.CondNE, next)

	// String stores are twice as fast, and go the wrong way where somebody has left the direction flag set.
	const step, directionFlag = 64, 1 << 10
	cleared := s.NewLabel()
	s.Place(empty)
	s.Pushf()
	s.Pop(amd64.RAX)
	s.And32Imm(amd64.RAX, directionFlag)
	s.Lea(amd64.RSI, amd64.At(amd64.R11, ring.ChunkHeader))
	s.MovImm32(amd64.RCX, (ring.ChunkSize-ring.ChunkHeader)/step)
	s.Test(amd64.RAX, amd64.RAX)
	s.MovImm32(amd64.RAX, 0)
	s.Jcc(amd64.CondNE, clear)
	s.Mov(amd64.RDI, amd64.RSI)
	s.MovImm32(amd64.RCX, (ring.ChunkSize-ring.ChunkHeader)/8)
	s.RepStos64()
	s.Jmp(cleared)
	s.Place(clear)
	for off := int32(0); off < step; off += 8 {
		s.Store64(amd64.At(amd64.RSI, off), amd64.RAX)
	}
	s.Lea(amd64.RSI, amd64.At(amd64.RSI, step))
	s.Lea(amd64.RCX, amd64.At(amd64.RCX, -1))
	s.Test(amd64.RCX, amd64.RCX)
	s.Jcc(amd64.CondNE, clear)
	s.Place(cleared)
	s.Store64Imm(amd64.At(amd64.R11, ring.ChunkNext), 0)
	s.Store32Imm(amd64.At(amd64.R11, ring.ChunkSpare), 0)
	s.Lea(amd64.RDX, amd64.At(amd64.RDX, 1))
	s.Jmp(got)

	// All chunks are threads' present ones. So the thread overwrites its own, if it has one.
	s.Place(starved)
	own := s.NewLabel()
	s.Load32(amd64.R11, s.slot(ring.SlotChunk))
	s.Test(amd64.R11, amd64.R11)
	s.Jcc(amd64.CondNE, own)
	s.Rdtsc()
	s.Store32(s.hdr(ring.HdrStarved), amd64.RAX)
	s.Store32(s.hdr(ring.HdrStarved+4), amd64.RDX)
	s.Jmp(none)
	s.Place(own)
	s.Lea(amd64.RDX, amd64.At(amd64.R11, -1))
	s.chunkAt(amd64.R11)
	s.Store32Imm(s.slot(ring.SlotChunk), 0)
	s.Load32(amd64.RAX, s.slot(ring.SlotFirst)) // a number is left out, as something is
	s.Lea(amd64.RAX, amd64.At(amd64.RAX, 1))
	s.Store32(s.slot(ring.SlotFirst), amd64.RAX)
	s.Load32(amd64.RAX, amd64.At(amd64.R11, ring.ChunkState))
	s.Lea(amd64.RAX, amd64.At(amd64.RAX, 1<<ring.ChunkChanges+ring.ChunkTaken-ring.ChunkOwned))
	s.Store32(amd64.At(amd64.R11, ring.ChunkState), amd64.RAX)
	s.Jmp(empty)
	s.Place(got)
}

// takeGrace goes to none while the rings are frozen. Where a call has fired, and the recorder hasn't looked yet, it takes one of the
// chunks that threads may have until they are. RAX and RDX are clobbered.
func (s *slowPath) takeGrace(none amd64.Label) {
	again, open := s.NewLabel(), s.NewLabel()
	s.Load64(amd64.RAX, s.hdr(ring.HdrPool))
	s.Place(again)
	s.Test(amd64.RAX, amd64.RAX)
	s.Jcc(amd64.CondE, none)
	s.Lea(amd64.RDX, amd64.At(amd64.RAX, -ring.PoolGrace))
	s.CmpImm32(amd64.RAX, ring.PoolOpen)
	s.Jcc(amd64.CondE, open)
	s.LockCmpxchg64(s.hdr(ring.HdrPool), amd64.RDX)
	s.Jcc(amd64.CondNE, again)
	s.Place(open)
}

// adopt notes in the thread's present chunk that it is full, and in the one whose index+1 is in EDX that it is the thread's next. RAX and
// RSI are clobbered.
//
// Registers inside: R10 the index+1, R11 the chunk.
func (s *slowPath) adopt() {
	first := s.NewLabel()
	s.Mov32(amd64.R10, amd64.RDX)
	s.Load32(amd64.R11, s.slot(ring.SlotChunk))
	s.Test(amd64.R11, amd64.R11)
	s.Jcc(amd64.CondE, first)
	s.chunkAt(amd64.R11)
	s.stamp(ring.ChunkTo)
	s.Load64(amd64.RAX, s.hdr(ring.HdrHand))
	s.Store64(amd64.At(amd64.R11, ring.ChunkHand), amd64.RAX)
	s.Load32(amd64.RAX, amd64.At(amd64.R11, ring.ChunkState))
	s.Lea(amd64.RAX, amd64.At(amd64.RAX, 1<<ring.ChunkChanges+ring.ChunkFull-ring.ChunkOwned))
	s.Store32(amd64.At(amd64.R11, ring.ChunkState), amd64.RAX)

	s.Place(first)
	s.Mov32(amd64.R11, amd64.R10)
	s.chunkAt(amd64.R11)
	s.Mov(amd64.RAX, amd64.R8)
	s.Sub(amd64.RAX, amd64.R9)
	s.Lea(amd64.RAX, amd64.At(amd64.RAX, -ring.SlotsOff))
	s.ShrImm(amd64.RAX, 6) // the slot's index is the thread ID
	s.Store32(amd64.At(amd64.R11, ring.ChunkTID), amd64.RAX)
	s.Load32(amd64.RAX, s.slot(ring.SlotFirst))
	s.Store32(amd64.At(amd64.R11, ring.ChunkSeq), amd64.RAX)
	s.Lea(amd64.RAX, amd64.At(amd64.RAX, 1))
	s.Store32(s.slot(ring.SlotFirst), amd64.RAX)
	s.stamp(ring.ChunkFrom)
	s.Store64Imm(amd64.At(amd64.R11, ring.ChunkTo), 0)
	// From ChunkTaken, and from ChunkApart, to ChunkOwned with the next number of changes.
	s.Load32(amd64.RAX, amd64.At(amd64.R11, ring.ChunkState))
	s.MovImm32(amd64.RSI, ring.ChunkStates)
	s.Or(amd64.RAX, amd64.RSI)
	s.Lea(amd64.RAX, amd64.At(amd64.RAX, 1<<ring.ChunkChanges+ring.ChunkOwned-ring.ChunkStates))
	s.Store32(amd64.At(amd64.R11, ring.ChunkState), amd64.RAX)
	s.Mov32(amd64.RDX, amd64.R10)
}

// chunkAt turns an index+1 into the chunk's address.
func (s *slowPath) chunkAt(r amd64.Reg) {
	s.ShlImm(r, ring.ChunkShift)
	s.Lea(r, amd64.AtIndex(amd64.R9, r, 1, ring.ChunksOff-ring.ChunkSize))
}

// stamp writes the time-stamp counter into the header of the chunk at R11. RAX and RDX are clobbered.
func (s *slowPath) stamp(field int32) {
	s.Rdtsc()
	s.Store32(amd64.At(amd64.R11, field), amd64.RAX)
	s.Store32(amd64.At(amd64.R11, field+4), amd64.RDX)
}
